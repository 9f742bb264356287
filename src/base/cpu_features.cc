#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hawser::base {
namespace {

[[maybe_unused]] constexpr unsigned kXsaveBit = 27;  // Of leaf 1, ECX: XCR0 can be read.
constexpr std::uint64_t kAvxState = 0x6;             // XMM and YMM.
constexpr std::uint64_t kWideState = 0xe6;           // And the mask registers and ZMM.

constexpr bool has(std::uint32_t word, unsigned bit) { return (word >> bit & 1) != 0; }

CpuWords cpu_words() {
  CpuWords words;
#if defined(__x86_64__)
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return words;
  words.leaf1_ecx = ecx;
  if (has(ecx, kXsaveBit)) {
    std::uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = std::uint64_t{high} << 32 | low;
  }
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return words;
  words.leaf7_ebx = ebx;
  words.leaf7_ecx = ecx;
#endif
  return words;
}

}  // namespace

CpuFeatures cpu_features_of(const CpuWords& words) {
  CpuFeatures features;
  if ((words.xcr0 & kAvxState) != kAvxState) return features;
  features.f16c = has(words.leaf1_ecx, 29);
  features.avx2 = has(words.leaf7_ebx, 5);
  if ((words.xcr0 & kWideState) != kWideState || !has(words.leaf7_ebx, 16)) return features;
  features.avx512f = true;
  features.avx512dq = has(words.leaf7_ebx, 17);
  features.avx512bw = has(words.leaf7_ebx, 30);
  features.avx512vl = has(words.leaf7_ebx, 31);
  features.avx512vbmi2 = has(words.leaf7_ecx, 6);
  return features;
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = cpu_features_of(cpu_words());
  return features;
}

}  // namespace hawser::base
