#pragma once

// CpuFeatures: which vector instructions this processor has whose registers the operating system saves, too.
//
// We ask the processor ourselves. __builtin_cpu_supports depends on a compiler's run-time library, and that of the
// compiler that builds the wheels answers no to everything.
//
// Thread rule: any thread.

#include <cstdint>

namespace hawser::base {

struct CpuFeatures {
  bool avx2 = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512dq = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512vbmi2 = false;
};

/// What x86's instruction cpuid says, and the register XCR0; all zero where they cannot be asked.
struct CpuWords {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_ecx = 0;
  std::uint64_t xcr0 = 0;  ///< Which registers the operating system saves.
};

CpuFeatures cpu_features_of(const CpuWords& words);

/// This processor's, asked once. On others than x86-64 all are false.
const CpuFeatures& cpu_features();

}  // namespace hawser::base
