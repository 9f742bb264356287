#pragma once

// The kernels that copy.cc chooses among. Each is compiled with its own instruction set.

#include "base/copy.h"

namespace hawser::base {

extern const CopyKernels kSse2Kernels;
extern const CopyKernels kAvx2Kernels;
extern const CopyKernels kAvx512Kernels;

}  // namespace hawser::base
