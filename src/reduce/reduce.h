#pragma once

// Combining arrays of numbers, element by element, as fast as this machine can: instructions are chosen once at run
// time, and the bits of a result do not depend on them.
//
// Rules. Floating point: each combination of two is rounded to the elements' type, to the nearest, ties to even; those
// of 8 and 16 bits are combined as floats. A NaN among the two makes the result NaN, always the quiet one without sign
// and payload. Of a positive and a negative zero, min and max give the first. Integers wrap around.
//
// Thread rule: any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <hawser/datatype.h>

namespace hawser::reduce {

/// out[i] = first[i] op second[i]. `out` may be `first` or `second`; otherwise they do not overlap. Any alignment.
using Combine = void (*)(void* out, const void* first, const void* second, std::size_t count) noexcept;
/// Divides by the number of ranks what was summed for an average.
using Divide = void (*)(void* data, std::size_t count, std::uint64_t ranks) noexcept;

/// The loops of one family of processors. Immutable; lives for ever.
struct Kernels {
  std::string_view name;                    ///< "avx512", "avx2", "portable"
  Combine combine[kDataTypes][kReduceOps];  ///< Null: not accepted. An average is combined as a sum.
  Divide divide[kDataTypes];                ///< Null for bool.
};

/// The best for this machine.
const Kernels& kernels() noexcept;
/// Those that this machine can run, the best first.
std::span<const Kernels* const> usable_kernels() noexcept;

/// Null: these two do not go together.
inline Combine combine_for(DataType type, ReduceOp op) {
  return kernels().combine[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
}

/// What is left to do once all ranks are combined: the division of an average.
void finish(DataType type, ReduceOp op, void* data, std::size_t count, std::uint64_t ranks);

}  // namespace hawser::reduce
