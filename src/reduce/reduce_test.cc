#include "reduce/reduce.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "reduce/small_float.h"

namespace hawser::reduce {
namespace {

std::vector<std::byte> random_bytes(std::size_t size, base::Rng& rng) {
  std::vector<std::byte> bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(rng.u64() >> 13);
  return bytes;
}

/// Each pair of a type and an operation that goes together.
template <typename Visit>
void for_each_pair(Visit visit) {
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    for (std::size_t op = 0; op < kReduceOps; ++op) {
      if (is_accepted(static_cast<DataType>(type), static_cast<ReduceOp>(op))) visit(type, op);
    }
  }
}

std::string name_of(const Kernels& kernels, std::size_t type, std::size_t op) {
  return std::string(kernels.name) + " " + std::string(to_string(static_cast<DataType>(type))) + " " +
         std::string(to_string(static_cast<ReduceOp>(op)));
}

TEST(Reduce, WhatGoesTogether) {
  std::size_t pairs = 0;
  for_each_pair([&](std::size_t, std::size_t) { ++pairs; });
  EXPECT_EQ(pairs, 6U * 5 + 8U * 8 + 3U);
  EXPECT_FALSE(is_accepted(DataType::kFloat32, ReduceOp::kXor));
  EXPECT_FALSE(is_accepted(DataType::kBool, ReduceOp::kSum));
  EXPECT_FALSE(is_accepted(static_cast<DataType>(kDataTypes), ReduceOp::kSum));
  EXPECT_FALSE(is_accepted(DataType::kFloat32, static_cast<ReduceOp>(kReduceOps)));
  EXPECT_EQ(to_string(static_cast<DataType>(200)), "unknown");
  EXPECT_EQ(to_string(static_cast<ReduceOp>(200)), "unknown");
  EXPECT_EQ(size_of(static_cast<DataType>(kDataTypes)), 0U);
}

TEST(Reduce, AllInstructionsGiveTheSameBits) {
  const auto usable = usable_kernels();
  const Kernels& plain = *usable.back();
  EXPECT_EQ(plain.name, "portable");
  base::Rng rng(7);
  for_each_pair([&](std::size_t type, std::size_t op) {
    const std::size_t size = size_of(static_cast<DataType>(type));
    for (const std::size_t count : {0U, 1U, 7U, 64U, 1023U, 1024U, 1025U, 5000U}) {
      const auto a = random_bytes(count * size + 1, rng), b = random_bytes(count * size + 1, rng);
      std::vector<std::byte> expected(count * size + 1), got(count * size + 1);
      plain.combine[type][op](expected.data(), a.data(), b.data(), count);
      for (const Kernels* const kernels : usable) {
        const std::string what = name_of(*kernels, type, op) + ", " + std::to_string(count) + " elements";
        kernels->combine[type][op](got.data(), a.data(), b.data(), count);
        ASSERT_EQ(got, expected) << what;
        // In place of either, and at odd addresses.
        std::vector<std::byte> first = a, second = b;
        kernels->combine[type][op](first.data(), first.data(), b.data(), count);
        kernels->combine[type][op](second.data(), a.data(), second.data(), count);
        ASSERT_EQ(std::memcmp(first.data(), expected.data(), count * size), 0) << what;
        ASSERT_EQ(std::memcmp(second.data(), expected.data(), count * size), 0) << what;
        std::vector<std::byte> odd(count * size + 1), odd_a(count * size + 1);
        std::memcpy(odd_a.data() + 1, a.data(), count * size);
        kernels->combine[type][op](odd.data() + 1, odd_a.data() + 1, b.data(), count);
        ASSERT_EQ(std::memcmp(odd.data() + 1, expected.data(), count * size), 0) << what;
      }
    }
  });
}

TEST(Reduce, AllInstructionsDivideAlike) {
  base::Rng rng(8);
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    if (type == static_cast<std::size_t>(DataType::kBool)) continue;
    constexpr std::size_t kCount = 2100;
    const auto data = random_bytes(kCount * size_of(static_cast<DataType>(type)), rng);
    auto expected = data;
    usable_kernels().back()->divide[type](expected.data(), kCount, 7);
    for (const Kernels* const kernels : usable_kernels()) {
      auto got = data;
      kernels->divide[type](got.data(), kCount, 7);
      ASSERT_EQ(got, expected) << kernels->name << " " << to_string(static_cast<DataType>(type));
    }
  }
}

template <typename T>
T one(DataType type, ReduceOp op, T first, T second) {
  T out = {};
  combine_for(type, op)(&out, &first, &second, 1);
  return out;
}

TEST(Reduce, Numbers) {
  EXPECT_EQ(one<float>(DataType::kFloat32, ReduceOp::kSum, 1.5F, 2.25F), 3.75F);
  EXPECT_EQ(one<double>(DataType::kFloat64, ReduceOp::kProd, -1.5, 2), -3);
  EXPECT_EQ(one<std::int32_t>(DataType::kInt32, ReduceOp::kMin, -5, 3), -5);
  EXPECT_EQ(one<std::uint32_t>(DataType::kUInt32, ReduceOp::kMin, 0xFFFFFFFB, 3), 3U);
  EXPECT_EQ(one<std::int8_t>(DataType::kInt8, ReduceOp::kMax, -5, 3), 3);
  EXPECT_EQ(one<std::uint8_t>(DataType::kUInt8, ReduceOp::kAnd, 0x3C, 0x0F), 0x0C);
  EXPECT_EQ(one<std::uint16_t>(DataType::kUInt16, ReduceOp::kOr, 0x3C, 0x0F), 0x3F);
  EXPECT_EQ(one<std::int64_t>(DataType::kInt64, ReduceOp::kXor, 0x3C, 0x0F), 0x33);
  EXPECT_EQ(one<std::uint8_t>(DataType::kBool, ReduceOp::kAnd, 4, 2), 1);  // Both are true.
  EXPECT_EQ(one<std::uint8_t>(DataType::kBool, ReduceOp::kXor, 4, 2), 0);
  EXPECT_EQ(one<std::uint8_t>(DataType::kBool, ReduceOp::kOr, 0, 0), 0);
  const std::uint16_t sum = one<std::uint16_t>(DataType::kBFloat16, ReduceOp::kSum, 0x3F80, 0x4000);
  EXPECT_EQ(sum, 0x4040);                                                                  // 1 + 2
  EXPECT_EQ(one<std::uint8_t>(DataType::kFloat8E4M3, ReduceOp::kProd, 0x7E, 0x7E), 0x7F);  // 448 * 448 is too large.
}

TEST(Reduce, IntegersWrapAround) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(one<std::int32_t>(DataType::kInt32, ReduceOp::kSum, kMost, 1), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(one<std::int16_t>(DataType::kInt16, ReduceOp::kProd, 0x4000, 4), 0);
  EXPECT_EQ(one<std::uint64_t>(DataType::kUInt64, ReduceOp::kSum, ~std::uint64_t{0}, 2), 1U);
}

TEST(Reduce, ANanIsAlwaysTheSame) {
  const auto odd_nan = std::bit_cast<float>(0xFFF12345U);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(one<float>(DataType::kFloat32, op, odd_nan, 1)), 0x7FC00000U);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(one<float>(DataType::kFloat32, op, 1, odd_nan)), 0x7FC00000U);
  }
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(std::bit_cast<std::uint32_t>(one<float>(DataType::kFloat32, ReduceOp::kSum, kInfinite, -kInfinite)),
            0x7FC00000U);
  EXPECT_TRUE(std::signbit(one<float>(DataType::kFloat32, ReduceOp::kMin, -0.0F, 0.0F)));  // The first one.
  EXPECT_FALSE(std::signbit(one<float>(DataType::kFloat32, ReduceOp::kMin, 0.0F, -0.0F)));
}

TEST(Reduce, AnAverageOfIntegersIsRoundedToZero) {
  std::array<std::int32_t, 4> numbers = {7, -7, 8, -1};
  finish(DataType::kInt32, ReduceOp::kAvg, numbers.data(), numbers.size(), 2);
  EXPECT_EQ(numbers, (std::array<std::int32_t, 4>{3, -3, 4, 0}));
  finish(DataType::kInt32, ReduceOp::kSum, numbers.data(), numbers.size(), 2);
  EXPECT_EQ(numbers[0], 3);
  std::array<std::uint8_t, 1> small = {0x7C};  // 416 as f8e4m3, and 208 afterwards.
  finish(DataType::kFloat8E4M3, ReduceOp::kAvg, small.data(), 1, 2);
  EXPECT_EQ(Float8E4M3::to_float(small[0]), Float8E4M3::to_float(0x7C) / 2);
}

}  // namespace
}  // namespace hawser::reduce
