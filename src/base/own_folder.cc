#include "base/own_folder.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <memory>

namespace hawser::base {

std::string own_folder() {
  Dl_info info = {};
  link_map* file = nullptr;
  if (::dladdr1(reinterpret_cast<const void*>(&own_folder), &info, reinterpret_cast<void**>(&file), RTLD_DL_LINKMAP) ==
          0 ||
      file == nullptr) {
    return {};
  }
  // The loader has no name for the program itself, and dladdr gives what it was called by.
  const char* const name = *file->l_name != '\0' ? file->l_name : "/proc/self/exe";
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(name, nullptr), &std::free);
  if (whole == nullptr) return {};
  const std::string path = whole.get();
  return path.substr(0, path.rfind('/'));
}

}  // namespace hawser::base
