#pragma once

// What the files of each instruction set define for reduce.cc.

#include "reduce/reduce.h"

namespace hawser::reduce {

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace hawser::reduce
