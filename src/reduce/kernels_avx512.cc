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
namespace avx512 {
namespace {

#include "reduce/kernels.inc"

}  // namespace
}  // namespace avx512

constinit const Kernels kAvx512Kernels = avx512::make_kernels("avx512");

}  // namespace hawser::reduce
