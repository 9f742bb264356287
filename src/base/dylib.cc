#include "base/dylib.h"

#include <dlfcn.h>

#include "base/format.h"

namespace hawser::base {

Result<Dylib> Dylib::open(std::span<const std::string_view> names) {
  std::string tried;
  for (const std::string_view name : names) {
    std::string text(name);
    // Local: two libraries with the same symbols (two versions of UCX) must not mix.
    if (void* handle = ::dlopen(text.c_str(), RTLD_NOW | RTLD_LOCAL)) return Dylib(handle, std::move(text));
    const char* why = ::dlerror();
    tried += base::format("{}{}: {}", tried.empty() ? "" : "; ", name, why != nullptr ? why : "unknown error");
  }
  return Status(Code::kNotFound, base::format("no shared library could be opened, tried {}", tried));
}

Dylib::~Dylib() {
  if (handle_ != nullptr && !keep_loaded_) ::dlclose(handle_);
}

void* Dylib::find(const char* name) const { return ::dlsym(handle_, name); }

Status Dylib::missing(const char* name) const {
  return Status(Code::kNotFound, base::format("{} has no symbol {}", name_, name));
}

}  // namespace hawser::base
