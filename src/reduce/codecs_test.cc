#include "reduce/codecs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"

namespace hawser::reduce {
namespace {

constexpr std::array kTypes = {DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16};
constexpr std::array kCounts = {0U, 1U, 2U, 3U, 255U, 256U, 257U, 1000U};

std::vector<std::shared_ptr<const Codec>> all_codecs() {
  return {make_top_k(1.0),
          make_top_k(0.1),
          make_random_k(1.0, 3),
          make_random_k(0.1, 3),
          make_int8(),
          make_fp8(DataType::kFloat8E4M3),
          make_fp8(DataType::kFloat8E5M2)};
}

std::vector<float> values_of(std::size_t count, std::uint64_t seed) {
  base::Rng rng(seed);
  std::vector<float> values(count);
  for (float& each : values) each = static_cast<float>(static_cast<double>(rng.below(2001)) / 10 - 100);
  return values;
}

std::vector<std::byte> packed(const Codec& codec, std::span<const float> values, DataType type, std::uint64_t number) {
  std::vector<std::byte> bytes(codec.packed_bytes(values.size(), type));
  codec.pack(values, type, number, bytes);
  return bytes;
}

std::vector<float> through(const Codec& codec, std::span<const float> values, DataType type, std::uint64_t number = 0) {
  const std::vector<std::byte> bytes = packed(codec, values, type, number);
  std::vector<float> got(values.size(), 0.0F);
  EXPECT_TRUE(codec.unpack(bytes, type, number, 1.0F, got).ok());
  return got;
}

TEST(Codecs, WhatIsPackedIsNearWhatItWas) {
  for (const auto& codec : all_codecs()) {
    const bool is_sparse = codec->name().find("_k(0.1") != std::string::npos;
    const bool is_fp8 = codec->name().starts_with("fp8");
    for (const DataType type : kTypes) {
      ASSERT_TRUE(codec->accepts(type));
      for (const std::size_t count : kCounts) {
        const std::vector<float> values = values_of(count, count);
        const std::vector<float> got = through(*codec, values, type);
        for (std::size_t i = 0; i < count; ++i) {
          if (is_sparse && got[i] == 0.0F) continue;
          const float allowed = is_fp8 ? 0.13F * std::abs(values[i]) + 0.01F : 0.6F;
          ASSERT_NEAR(got[i], values[i], allowed) << codec->name() << " of " << to_string(type) << ", " << i;
        }
      }
    }
  }
}

TEST(Codecs, AllOfThemAreLossless) {
  for (const auto& codec : {make_top_k(1.0), make_random_k(1.0, 7)}) {
    for (const std::size_t count : kCounts) {
      const std::vector<float> values = values_of(count, 5);
      EXPECT_EQ(codec->packed_bytes(count, DataType::kFloat32), count * 4) << "no places are sent";
      EXPECT_EQ(through(*codec, values, DataType::kFloat32), values);
    }
  }
}

TEST(Codecs, TopKTakesTheLargestAndOfEqualOnesTheFirst) {
  const auto codec = make_top_k(0.4);
  EXPECT_EQ(through(*codec, std::vector<float>{1, -9, 3, 9, 2}, DataType::kFloat32),
            (std::vector<float>{0, -9, 0, 9, 0}));
  EXPECT_EQ(through(*codec, std::vector<float>{5, 5, -5, 5, 5}, DataType::kFloat32),
            (std::vector<float>{5, 5, 0, 0, 0}));
  const std::vector<float> got = through(*codec, std::vector<float>{1, NAN, 3, INFINITY, 2}, DataType::kFloat32);
  EXPECT_TRUE(std::isnan(got[1]));
  EXPECT_EQ(got[3], INFINITY);
  EXPECT_EQ(codec->packed_bytes(5, DataType::kFloat16), 2U * (4 + 2));
  EXPECT_EQ(make_top_k(1e-9)->packed_bytes(5, DataType::kFloat32), 8U) << "one at least";
  EXPECT_EQ(make_top_k(0.5)->packed_bytes(0, DataType::kFloat32), 0U);
}

TEST(Codecs, TopKRefusesPlacesThatItDoesNotWrite) {
  const auto codec = make_top_k(0.5);
  const std::vector<std::byte> good = packed(*codec, std::vector<float>{4, 3, 2, 1}, DataType::kFloat32, 0);
  const auto status_of = [&](std::uint32_t first, std::uint32_t second) {
    std::vector<std::byte> bytes = good;
    const std::array places = {first, second};
    std::memcpy(bytes.data(), places.data(), sizeof places);
    std::vector<float> into(4, 0.0F);
    return codec->unpack(bytes, DataType::kFloat32, 0, 1.0F, into).code();
  };
  EXPECT_EQ(status_of(0, 3), Code::kOk);
  EXPECT_EQ(status_of(0, 4), Code::kCorrupt);
  EXPECT_EQ(status_of(1, 1), Code::kCorrupt);
  EXPECT_EQ(status_of(2, 1), Code::kCorrupt);
  EXPECT_EQ(status_of(0, UINT32_MAX), Code::kCorrupt);
  for (const auto& each : all_codecs()) {
    std::vector<float> into(4, 0.0F);
    const std::vector<std::byte> bytes(each->packed_bytes(4, DataType::kFloat32) + 1);
    EXPECT_EQ(each->unpack(bytes, DataType::kFloat32, 0, 1.0F, into).code(), Code::kCorrupt) << each->name();
  }
}

TEST(Codecs, RandomKDrawsOthersEachTimeAndAllInTheEnd) {
  const auto codec = make_random_k(0.25, 9);
  const std::vector<float> ones(16, 1.0F);
  std::set<std::vector<float>> draws;
  std::vector<float> sum(16, 0.0F);
  for (std::uint64_t number = 0; number < 100; ++number) {
    const std::vector<float> got = through(*codec, ones, DataType::kFloat32, number);
    float chosen = 0;
    for (std::size_t i = 0; i < got.size(); ++i) chosen += got[i], sum[i] += got[i];
    EXPECT_EQ(chosen, 4.0F);
    draws.insert(got);
  }
  EXPECT_GT(draws.size(), 20U);
  for (const float each : sum) EXPECT_GT(each, 5.0F);
  EXPECT_EQ(through(*codec, ones, DataType::kFloat32, 3),
            through(*make_random_k(0.25, 9), ones, DataType::kFloat32, 3));
  EXPECT_NE(make_random_k(0.25, 8)->name(), codec->name());
}

TEST(Codecs, QuantisersKeepTheLargestAndMarkWhatIsNotFinite) {
  for (const auto& codec : {make_int8(), make_fp8(DataType::kFloat8E4M3), make_fp8(DataType::kFloat8E5M2)}) {
    std::vector<float> values(600, 0.5F);
    values[0] = -127;
    values[300] = INFINITY;
    std::vector<float> got = through(*codec, values, DataType::kFloat32);
    EXPECT_NEAR(got[0], -127, 0.001) << codec->name();
    EXPECT_NEAR(got[1], 0.5F, 0.51F);
    EXPECT_TRUE(std::isnan(got[256]) && std::isnan(got[300]) && std::isnan(got[511])) << "its block";
    EXPECT_NEAR(got[512], 0.5F, 0.01F) << "the next one is whole";
    const std::vector<float> tiny(4, std::numeric_limits<float>::denorm_min());
    EXPECT_EQ(through(*codec, tiny, DataType::kFloat32), std::vector<float>(4, 0.0F));
    EXPECT_EQ(through(*codec, std::vector<float>(300, 0.0F), DataType::kFloat32), std::vector<float>(300, 0.0F));
    EXPECT_EQ(codec->packed_bytes(257, DataType::kFloat16), 257U + 8);
  }
}

}  // namespace
}  // namespace hawser::reduce
