#pragma once

// The types of elements that ranks reduce, and the ways to combine two of them.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <hawser/export.h>

HAWSER_NAMESPACE_BEGIN

enum class DataType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3,  ///< OCP's e4m3fn: no infinity, 448 is the largest; what is beyond becomes NaN, as torch's cast has it.
  kFloat8E5M2,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,  ///< One byte; all but 0 is true, and what is written is 0 or 1.
};
inline constexpr std::size_t kDataTypes = 15;

/// Floating point: sum, prod, min, max, avg. Integers: these and the three bitwise ones. Bool: and, or, xor.
enum class ReduceOp : std::uint8_t {
  kSum,
  kProd,
  kMin,
  kMax,
  kAvg,  ///< The sum divided by the number of ranks; of integers it is rounded to zero.
  kAnd,
  kOr,
  kXor,
};
inline constexpr std::size_t kReduceOps = 8;

HAWSER_API std::size_t size_of(DataType type);         ///< Of one element in bytes.
HAWSER_API std::string_view to_string(DataType type);  ///< "f32", "bf16", "f8e4m3", "bool"
HAWSER_API std::string_view to_string(ReduceOp op);    ///< "sum"
/// True where elements of this type can be combined in this way.
HAWSER_API bool is_accepted(DataType type, ReduceOp op);

HAWSER_NAMESPACE_END
