#include "library.h"

#include <dlfcn.h>

namespace nixl_bench {
namespace {

template <typename Function>
void look_up(void* handle, const std::string& path, const char* name, Function* out) {
  void* const found = ::dlsym(handle, name);
  if (found == nullptr) throw Failure(path + " has no function " + name);
  *out = reinterpret_cast<Function>(found);
}

}  // namespace

Library Library::open(const std::string& path) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Failure("cannot open " + path + ": " + ::dlerror());
  Library library;
#define NIXL_BENCH_LOOK_UP(name) look_up(handle, path, "nixl_capi_" #name, &library.name);
  NIXL_BENCH_FUNCTIONS(NIXL_BENCH_LOOK_UP)
#undef NIXL_BENCH_LOOK_UP
  return library;
}

void need(int status, const char* call) {
  if (status != NIXL_CAPI_SUCCESS) throw Failure(std::string(call) + " gave " + std::to_string(status));
}

}  // namespace nixl_bench
