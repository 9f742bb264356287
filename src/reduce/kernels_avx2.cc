#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include <immintrin.h>
#include "reduce/kernels.h"
#include "reduce/small_float.h"

namespace hawser::reduce {
namespace avx2 {
namespace {

#include "reduce/kernels.inc"

}  // namespace
}  // namespace avx2

constinit const Kernels kAvx2Kernels = avx2::make_kernels("avx2");

}  // namespace hawser::reduce
