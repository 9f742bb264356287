#include "reduce/small_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace hawser::reduce {
namespace {

/// What the bits mean, by the definition of the format.
template <typename Small>
double meaning(std::uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const int mantissa = static_cast<int>(bits & ((1U << mantissa_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  const bool is_last = exponent == (1 << exponent_bits) - 1;
  if (is_last && has_infinity && mantissa == 0) return sign * std::numeric_limits<double>::infinity();
  if (is_last && (has_infinity || mantissa == (1 << mantissa_bits) - 1)) return std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

/// The magnitude's bits that the rules ask for, found by looking at all of the format's numbers.
template <typename Small>
class Reference {
 public:
  Reference(int exponent_bits, int mantissa_bits, bool has_infinity) {
    for (std::uint32_t bits = 0; bits <= Small::kLargest; ++bits) {
      numbers_.push_back(meaning<Small>(bits, exponent_bits, mantissa_bits, has_infinity));
    }
    beyond_ = 2 * numbers_.back() - numbers_[numbers_.size() - 2];
  }
  std::uint32_t nearest(double magnitude) const {
    const auto above = std::lower_bound(numbers_.begin(), numbers_.end(), magnitude);
    const auto at = static_cast<std::uint32_t>(above - numbers_.begin());
    if (at == 0) return 0;
    const double upper = above == numbers_.end() ? beyond_ : *above;
    const double to_lower = magnitude - numbers_[at - 1], to_upper = upper - magnitude;
    const bool goes_up = to_upper < to_lower || (to_upper == to_lower && (at % 2) == 0);
    return goes_up ? at : at - 1;
  }

 private:
  std::vector<double> numbers_;
  double beyond_ = 0;
};

template <typename Small>
void check_format(int exponent_bits, int mantissa_bits, bool has_infinity) {
  const std::uint32_t all = 1U << (1 + exponent_bits + mantissa_bits);
  for (std::uint32_t bits = 0; bits < all; ++bits) {
    const double expected = meaning<Small>(bits, exponent_bits, mantissa_bits, has_infinity);
    const float got = Small::to_float(static_cast<decltype(Small::bits)>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_EQ(Small::from_float(got), Small::kNan);
    } else {
      ASSERT_EQ(got, expected) << bits;
      ASSERT_EQ(std::signbit(got), std::signbit(expected));
      ASSERT_EQ(Small::from_float(got), bits);
    }
  }
  const Reference<Small> reference(exponent_bits, mantissa_bits, has_infinity);
  const std::uint32_t sign = 1U << (exponent_bits + mantissa_bits);
  base::Rng rng(1);
  const auto check = [&](float value) {
    const std::uint32_t nearest = reference.nearest(std::fabs(value));
    const std::uint32_t magnitude = nearest > Small::kLargest ? Small::kTooLarge : nearest;
    // A NaN has no sign.
    const std::uint32_t expected = magnitude == Small::kNan || !std::signbit(value) ? magnitude : magnitude | sign;
    ASSERT_EQ(Small::from_float(value), expected) << value;
  };
  for (int i = 0; i < 200'000; ++i) {
    const float any = std::bit_cast<float>(static_cast<std::uint32_t>(rng.u64()));
    if (!std::isnan(any)) check(any);
    const float near = static_cast<float>(
        std::ldexp(static_cast<double>(rng.u64() % 4096) - 2048, static_cast<int>(rng.u64() % 40) - 32));
    check(near);
  }
  // Halfway between neighbours, and a little to either side.
  for (std::uint32_t bits = 0; bits < Small::kLargest; ++bits) {
    const float lower = Small::to_float(static_cast<decltype(Small::bits)>(bits));
    const float upper = Small::to_float(static_cast<decltype(Small::bits)>(bits + 1));
    const float half = lower / 2 + upper / 2;
    for (const float value : {half, std::nextafter(half, lower), std::nextafter(half, upper)}) check(value);
  }
  check(std::numeric_limits<float>::infinity());
  check(-std::numeric_limits<float>::infinity());
}

TEST(SmallFloat, SixteenBits) { check_format<Float16>(5, 10, true); }
TEST(SmallFloat, EightBitsWithFourOfExponent) { check_format<Float8E4M3>(4, 3, false); }
TEST(SmallFloat, EightBitsWithFiveOfExponent) { check_format<Float8E5M2>(5, 2, true); }

TEST(SmallFloat, BFloat16RoundsToTheNearest) {
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
    const float value = BFloat16::to_float(static_cast<std::uint16_t>(bits));
    const auto back = BFloat16::from_float(value);
    ASSERT_EQ(back, std::isnan(value) ? BFloat16::kNan : bits);
  }
  const auto from_bits = [](std::uint32_t bits) { return BFloat16::from_float(std::bit_cast<float>(bits)); };
  EXPECT_EQ(from_bits(0x3F808000), 0x3F80);  // A tie goes to the even one,
  EXPECT_EQ(from_bits(0x3F818000), 0x3F82);
  EXPECT_EQ(from_bits(0x3F808001), 0x3F81);  // a little more goes up,
  EXPECT_EQ(from_bits(0x3F817FFF), 0x3F81);  // a little less down.
  EXPECT_EQ(from_bits(0x7F7FFFFF), 0x7F80);  // What is too large is infinite.
  EXPECT_EQ(from_bits(0xFF7FFFFF), 0xFF80);
}

}  // namespace
}  // namespace hawser::reduce
