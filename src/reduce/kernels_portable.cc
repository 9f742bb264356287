#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "reduce/kernels.h"
#include "reduce/small_float.h"

namespace hawser::reduce {
namespace portable {
namespace {

#include "reduce/kernels.inc"

}  // namespace
}  // namespace portable

constinit const Kernels kPortableKernels = portable::make_kernels("portable");

}  // namespace hawser::reduce
