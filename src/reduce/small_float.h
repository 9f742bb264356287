#pragma once

// Floating-point numbers of 8 and 16 bits: to float, which holds each of them exactly, and back, rounded to the
// nearest, ties to even. Without branches, so that compilers make vectors of loops of them.
//
// Source of the rounding: adding half of what is cut off, and the last bit that is kept, to the bits of the float (as
// IEEE 754 formats are ordered like integers); numbers below the least normal one are rounded by the addition of a
// constant whose last bit weighs as much as theirs does.

#include <bit>
#include <cstdint>

namespace hawser::reduce {

/// With `kExponent` bits of exponent and `kMantissa` of mantissa. Without an infinity the largest exponent holds
/// numbers, too, and what is too large becomes NaN.
template <typename Bits, int kExponent, int kMantissa, bool kHasInfinity>
struct SmallFloat {
  Bits bits;

  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kCut = 23 - kMantissa;
  static constexpr int kSignAt = kExponent + kMantissa;
  static constexpr std::uint32_t kAllOnes = (1U << kSignAt) - 1;
  static constexpr std::uint32_t kInfinity = kAllOnes & ~((1U << kMantissa) - 1);
  static constexpr std::uint32_t kNan = kHasInfinity ? kInfinity | (1U << (kMantissa - 1)) : kAllOnes;
  static constexpr std::uint32_t kLargest = kHasInfinity ? kInfinity - 1 : kAllOnes - 1;
  static constexpr std::uint32_t kTooLarge = kHasInfinity ? kInfinity : kNan;

  static float to_float(Bits from) {
    const std::uint32_t magnitude = from & kAllOnes;
    const std::uint32_t sign = (static_cast<std::uint32_t>(from) >> kSignAt) << 31;
    // As if it were a float, then moved to where a float has its exponents: exact, for small ones too.
    constexpr auto kMove = static_cast<std::uint32_t>(127 + 127 - kBias) << 23;
    const float moved = std::bit_cast<float>(magnitude << kCut) * std::bit_cast<float>(kMove);
    std::uint32_t bits = std::bit_cast<std::uint32_t>(moved);
    if constexpr (kHasInfinity) {
      bits = magnitude >= kInfinity ? 0x7F800000U | (magnitude << kCut) : bits;
    } else {
      bits = magnitude == kNan ? 0x7FC00000U : bits;
    }
    return std::bit_cast<float>(bits | sign);
  }

  static Bits from_float(float from) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(from);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t sign = (bits >> 31) << kSignAt;
    const std::uint32_t rounded = magnitude + ((1U << (kCut - 1)) - 1) + ((magnitude >> kCut) & 1U);
    const std::uint32_t normal = (rounded - (static_cast<std::uint32_t>(127 - kBias) << 23)) >> kCut;
    constexpr auto kPlace = static_cast<std::uint32_t>(127 - kBias + kCut + 1) << 23;
    const float placed = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kPlace);
    const std::uint32_t small = std::bit_cast<std::uint32_t>(placed) - kPlace;
    constexpr auto kLeastNormal = static_cast<std::uint32_t>(127 + 1 - kBias) << 23;
    const std::uint32_t finite = magnitude < kLeastNormal ? small : normal;
    const std::uint32_t number = (finite > kLargest ? kTooLarge : finite) | sign;
    const bool is_nan = magnitude > 0x7F800000U || (!kHasInfinity && finite > kLargest);
    return static_cast<Bits>(is_nan ? kNan : number);
  }
};

using Float16 = SmallFloat<std::uint16_t, 5, 10, true>;
using Float8E4M3 = SmallFloat<std::uint8_t, 4, 3, false>;
using Float8E5M2 = SmallFloat<std::uint8_t, 5, 2, true>;

/// The upper half of a float.
struct BFloat16 {
  std::uint16_t bits;

  static constexpr std::uint32_t kNan = 0x7FC0;
  static float to_float(std::uint16_t from) { return std::bit_cast<float>(static_cast<std::uint32_t>(from) << 16); }
  static std::uint16_t from_float(float from) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(from);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? kNan : rounded);
  }
};

}  // namespace hawser::reduce
