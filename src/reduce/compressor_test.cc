#include "reduce/compressor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace hawser::reduce {
namespace {

/// One rank's call, which ends well. The part is given back.
std::vector<float> call(const Compressor& compressor, const std::vector<float>& values) {
  auto packing = Packing::begin(compressor, values.size(), DataType::kFloat32);
  EXPECT_TRUE(packing.has_value()) << packing.error().to_string();
  std::vector<std::byte> part((*packing)->bytes());
  EXPECT_TRUE((*packing)->pack(values.data(), part).ok());
  std::vector<float> out(values.size());
  EXPECT_TRUE((*packing)->unpack(part, 1, false, out.data()).ok());
  (*packing)->commit();
  return out;
}

TEST(Compressors, WhatIsLeftOutComesLater) {
  const Compressor compressor = Compressor::top_k(0.25).value();
  EXPECT_EQ(call(compressor, {1, 2, 3, 4}), (std::vector<float>{0, 0, 0, 4}));
  EXPECT_EQ(compressor.residual(), (std::vector<float>{1, 2, 3, 0}));
  EXPECT_EQ(call(compressor, {1, 2, 3, 4}), (std::vector<float>{0, 0, 6, 0}));
  EXPECT_EQ(compressor.residual(), (std::vector<float>{2, 4, 0, 4}));
  EXPECT_EQ(call(compressor, {0, 0, 0, 0}), (std::vector<float>{0, 4, 0, 0}));
  const Compressor forgetful = Compressor::top_k(0.25, false).value();
  EXPECT_EQ(call(forgetful, {1, 2, 3, 4}), (std::vector<float>{0, 0, 0, 4}));
  EXPECT_TRUE(forgetful.residual().empty());
  EXPECT_EQ(call(forgetful, {1, 2, 3, 4}), (std::vector<float>{0, 0, 0, 4}));
}

TEST(Compressors, WhatDidNotEndWellLeavesTheStateAsItWas) {
  const Compressor compressor = Compressor::random_k(0.5).value();
  call(compressor, {1, 2, 3, 4});
  const std::vector<float> before = compressor.residual();
  {
    auto packing = Packing::begin(compressor, 4, DataType::kFloat32).value();
    EXPECT_EQ(packing->number(), 1U);
    std::vector<std::byte> part(packing->bytes());
    const std::vector<float> values(4, 7.0F);
    EXPECT_TRUE(packing->pack(values.data(), part).ok());
    EXPECT_EQ(Packing::begin(compressor, 4, DataType::kFloat32).error().code(), Code::kBusy);
    Compressor same = compressor;
    EXPECT_EQ(same.reset().code(), Code::kBusy);
  }
  EXPECT_EQ(compressor.residual(), before);
  EXPECT_EQ(Packing::begin(compressor, 4, DataType::kFloat32).value()->number(), 1U);
}

TEST(Compressors, OneIsOfOneTensor) {
  Compressor compressor = Compressor::int8();
  call(compressor, {1, 2, 3, 4});
  EXPECT_EQ(Packing::begin(compressor, 5, DataType::kFloat32).error().code(), Code::kInvalid);
  EXPECT_EQ(Packing::begin(compressor, 4, DataType::kFloat16).error().code(), Code::kInvalid);
  EXPECT_TRUE(compressor.reset().ok());
  EXPECT_TRUE(Packing::begin(compressor, 5, DataType::kFloat16).has_value());
}

TEST(Compressors, WhatCannotBePackedIsRefusedByName) {
  const Compressor compressor = Compressor::int8();
  for (const DataType type : {DataType::kFloat64, DataType::kInt32, DataType::kBool, DataType::kFloat8E4M3}) {
    const Status status = Packing::begin(compressor, 4, type).error();
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_NE(status.to_string().find(to_string(type)), std::string::npos) << status.to_string();
  }
  EXPECT_TRUE(Packing::begin(compressor, UINT32_MAX, DataType::kFloat32).has_value());
  EXPECT_EQ(Packing::begin(compressor, std::uint64_t{UINT32_MAX} + 1, DataType::kFloat32).error().code(),
            Code::kInvalid);
  for (const double ratio : {0.0, -1.0, 1.001, 0.0 / 0.0}) {
    EXPECT_EQ(Compressor::top_k(ratio).error().code(), Code::kInvalid) << ratio;
    EXPECT_EQ(Compressor::random_k(ratio).error().code(), Code::kInvalid) << ratio;
  }
  EXPECT_EQ(Compressor::fp8(DataType::kFloat16).error().code(), Code::kInvalid);
  EXPECT_FALSE(Compressor().valid());
  EXPECT_EQ(Compressor().name(), "");
}

TEST(Compressors, WhatIsNotFiniteIsNotFedBack) {
  const Compressor compressor = Compressor::int8();
  call(compressor, {INFINITY, 1, 2, 3});
  EXPECT_EQ(compressor.residual(), std::vector<float>(4, 0.0F));
}

}  // namespace
}  // namespace hawser::reduce
