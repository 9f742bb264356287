#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hawser::base {

void assertion_failed(const char* condition, const char* text, const char* file, int line) noexcept {
  std::fprintf(stderr, "hawser: %s:%d: %s (%s)\n", file, line, text, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace hawser::base
