#include "base/copy_string.h"

#include "base/copy.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hawser::base {
namespace {

// Sanitizers do not see what assembly does.
#if defined(__x86_64__) && !defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED) && !defined(HAWSER_SANITIZE_THREAD)

/// AMD's family, or 0 for other makers (AMD's manual of CPUID, Fn0000_0000 and Fn0000_0001: base plus extended family).
unsigned amd_family() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0 || ebx != signature_AMD_ebx) return 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return 0;
  return (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
}

bool find_out() {
  constexpr unsigned kZen5 = 0x1a;
  return amd_family() >= kZen5;
}

#else

bool find_out() { return false; }

#endif

}  // namespace

// Not measured at run time: the loop's first hundred microseconds are as quick as a string move, what follows is not.
bool string_moves_pay() noexcept {
  static const bool pay = find_out();
  return pay;
}

}  // namespace hawser::base
