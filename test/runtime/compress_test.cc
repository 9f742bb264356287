// Compressed and bucketed sums of worlds in one process, against plain sums.

#include <gtest/gtest.h>

#include <hawser/compress.h>
#include <hawser/world.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../must.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

class Compressed : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t size() const { return GetParam(); }
  std::vector<Compressor> each_rank(const std::function<Compressor()>& make) const {
    std::vector<Compressor> all;
    for (std::uint32_t rank = 0; rank < size(); ++rank) all.push_back(make());
    return all;
  }
  /// All ranks' call, by this thread. The first error.
  Status all_reduce(std::vector<std::vector<float>>& data, const std::vector<Compressor>& compressors,
                    ReduceOp op = ReduceOp::kSum) {
    std::vector<Request> requests;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      float* const at = data[rank].data();
      requests.push_back(worlds_[rank].iall_reduce(at, at, data[rank].size(), DataType::kFloat32, op,
                                                   {.compress = compressors[rank]}));
    }
    Status first;
    for (Request& request : requests) {
      const Status status = request.wait(20s);
      if (first.ok()) first = status;
    }
    return first;
  }
  static float value(std::uint32_t rank, std::size_t index, int step) {
    return static_cast<float>((index * 7 + rank * 13 + static_cast<unsigned>(step) * 5) % 23) - 11.0F;
  }
  std::vector<std::vector<float>> values(std::size_t count, int step) const {
    std::vector<std::vector<float>> all(size(), std::vector<float>(count));
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      for (std::size_t i = 0; i < count; ++i) all[rank][i] = value(rank, i, step);
    }
    return all;
  }

  std::vector<World> worlds_ = must(World::local(GetParam()));
};

TEST_P(Compressed, SendingAllOfItIsAPlainSum) {
  for (const bool is_random : {false, true}) {
    for (const std::size_t count : {0U, 1U, 6U, 1000U, 65537U}) {
      const auto compressors =
          each_rank([&] { return must(is_random ? Compressor::random_k(1) : Compressor::top_k(1)); });
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
        std::vector<std::vector<float>> data = values(count, 1), inputs = data;
        ASSERT_TRUE(all_reduce(data, compressors, op).ok());
        for (std::uint32_t rank = 0; rank < size(); ++rank) {
          ASSERT_TRUE(count == 0 || std::memcmp(data[rank].data(), data[0].data(), count * sizeof(float)) == 0);
          EXPECT_EQ(compressors[rank].residual(), std::vector<float>(count, 0.0F));
        }
        for (std::size_t i = 0; i < count; ++i) {
          float right = 0;
          for (const auto& input : inputs) right += input[i];
          if (op == ReduceOp::kAvg) right /= static_cast<float>(size());
          ASSERT_EQ(data[0][i], right) << i;
        }
      }
    }
  }
}

/// What has come so far, and what is left out, are together all that was given.
TEST_P(Compressed, NothingIsLostOverManySteps) {
  constexpr std::size_t kCount = 700;
  const std::vector<std::function<Compressor()>> ways = {
      [] { return must(Compressor::top_k(0.05)); }, [] { return must(Compressor::random_k(0.1, 4)); },
      [] { return Compressor::int8(); }, [] { return must(Compressor::fp8()); },
      [] { return must(Compressor::fp8(DataType::kFloat8E5M2)); }};
  for (const auto& way : ways) {
    const std::vector<Compressor> compressors = each_rank(way);
    std::vector<double> given(kCount), come(kCount);
    for (int step = 0; step < 12; ++step) {
      std::vector<std::vector<float>> data = values(kCount, step);
      for (std::size_t i = 0; i < kCount; ++i) {
        for (const auto& input : data) given[i] += input[i];
      }
      ASSERT_TRUE(all_reduce(data, compressors).ok());
      for (std::uint32_t rank = 1; rank < size(); ++rank) {
        ASSERT_EQ(std::memcmp(data[rank].data(), data[0].data(), kCount * sizeof(float)), 0) << compressors[0].name();
      }
      for (std::size_t i = 0; i < kCount; ++i) come[i] += data[0][i];
    }
    for (const Compressor& compressor : compressors) {
      const std::vector<float> residual = compressor.residual();
      ASSERT_EQ(residual.size(), kCount);
      for (std::size_t i = 0; i < kCount; ++i) come[i] += residual[i];
    }
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(come[i], given[i], 0.02) << compressors[0].name() << " " << i;
  }
}

/// Of six elements each rank sends the largest one, at a place of its own.
TEST_P(Compressed, DisjointLargestOnesAreAllThere) {
  const auto compressors = each_rank([] { return must(Compressor::top_k(1.0 / 6)); });
  std::vector<std::vector<float>> data(size(), std::vector<float>(6, 1.0F));
  for (std::uint32_t rank = 0; rank < size(); ++rank) data[rank][rank % 6] = 10;
  ASSERT_TRUE(all_reduce(data, compressors).ok());
  for (const auto& got : data) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      EXPECT_EQ(got[i], 10.0F * static_cast<float>((size() + 5 - i) / 6)) << i;
    }
  }
}

TEST_P(Compressed, HalvesAreAddedAsFloats) {
  for (const auto& [type, one, third] :
       {std::tuple<DataType, std::uint16_t, std::uint16_t>{DataType::kFloat16, 0x3C00, 0x3555},
        {DataType::kBFloat16, 0x3F80, 0x3EAB}}) {
    std::vector<std::vector<std::uint16_t>> data(size(), {one, third, one});
    std::vector<Request> requests;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      requests.push_back(worlds_[rank].iall_reduce(data[rank].data(), data[rank].data(), 3, type, ReduceOp::kAvg,
                                                   {.compress = must(Compressor::top_k(1))}));
    }
    for (Request& request : requests) ASSERT_TRUE(request.wait(20s).ok()) << request.status().to_string();
    for (const auto& got : data) EXPECT_EQ(got, (std::vector<std::uint16_t>{one, third, one}));
  }
}

TEST_P(Compressed, WhatRanksPackDifferentlyIsAMisfit) {
  if (size() == 1) return;
  std::vector<Compressor> compressors = each_rank([] { return must(Compressor::random_k(0.5, 1)); });
  compressors[size() - 1] = must(Compressor::random_k(0.5, 2));
  std::vector<std::vector<float>> data = values(64, 0);
  const Status status = all_reduce(data, compressors);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.to_string().find("differ"), std::string::npos) << status.to_string();
  EXPECT_TRUE(compressors[0].residual().empty()) << "it did not end well";
  EXPECT_EQ(compressors[0].reset().code(), Code::kOk) << "nothing uses it any more";
}

TEST_P(Compressed, WhatIsNotCompressedIsRefusedByName) {
  World& world = worlds_[0];
  const CollectiveOptions options = {.compress = Compressor::int8()};
  std::vector<double> x(4);
  const auto refused = [](const Status& status, const char* text) {
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_NE(status.to_string().find(text), std::string::npos) << status.to_string();
  };
  refused(world.all_reduce(x.data(), x.data(), 4, DataType::kFloat64, ReduceOp::kSum, options), "f64");
  refused(world.all_reduce(x.data(), x.data(), 4, DataType::kFloat32, ReduceOp::kMax, options),
          "max is not compressed");
  refused(world.broadcast(x.data(), 4, DataType::kFloat32, 0, options), "only an all_reduce");
  refused(world.barrier(options), "only an all_reduce");
  refused(
      world.all_reduce_bucketed(std::vector<Tensor>{{x.data(), 1}}, DataType::kFloat32, ReduceOp::kSum, 100, options),
      "one tensor");
  refused(world.all_reduce(nullptr, x.data(), 4, DataType::kFloat32, ReduceOp::kSum, options), "null");
}

/// Half of the elements: the first ones. Its parts hold the sum of a wrong rank's, if `lies`.
struct FirstHalf final : Codec {
  explicit FirstHalf(bool its_lies) : lies(its_lies) {}
  std::string name() const override { return "first_half"; }
  bool accepts(DataType type) const override { return type == DataType::kFloat32; }
  std::uint64_t packed_bytes(std::uint64_t count, DataType) const override { return (count + 1) / 2 * sizeof(float); }
  void pack(std::span<const float> values, DataType, std::uint64_t, std::span<std::byte> out) const override {
    std::memcpy(out.data(), values.data(), out.size());
  }
  Status unpack(std::span<const std::byte> packed, DataType, std::uint64_t, float factor,
                std::span<float> into) const override {
    if (lies && factor > 0) return Status(Code::kCorrupt, "a part is none of these");
    for (std::size_t i = 0; i < packed.size() / sizeof(float); ++i) {
      float value = 0;
      std::memcpy(&value, packed.data() + i * sizeof(float), sizeof value);
      into[i] += factor * value;
    }
    return {};
  }
  bool lies;
};

TEST_P(Compressed, AProgramsOwnWay) {
  auto compressors = each_rank([] { return Compressor(std::make_shared<FirstHalf>(false)); });
  std::vector<std::vector<float>> data(size(), {1, 2, 3});
  ASSERT_TRUE(all_reduce(data, compressors).ok());
  const auto ranks = static_cast<float>(size());
  for (const auto& got : data) EXPECT_EQ(got, (std::vector<float>{ranks, 2 * ranks, 0}));
  EXPECT_EQ(compressors[0].residual(), (std::vector<float>{0, 0, 3}));
  compressors = each_rank([] { return Compressor(std::make_shared<FirstHalf>(true)); });
  const Status status = all_reduce(data, compressors);
  EXPECT_EQ(status.code(), Code::kCorrupt) << status.to_string();
  EXPECT_NE(status.to_string().find("rank 0"), std::string::npos) << status.to_string();
}

TEST_P(Compressed, BucketsGiveWhatEachTensorWouldHave) {
  const std::vector<std::size_t> counts = {5, 0, 1, 300, 0, 7, 2000, 3, 3, 3, 1, 64, 64, 64, 0};
  for (const std::size_t bucket : {0U, 1U, 8U, 12U, 512U, 8192U, 1U << 20}) {
    std::vector<std::vector<std::vector<std::int64_t>>> data(size());
    std::vector<Request> requests;
    std::size_t buckets = 0;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      std::vector<Tensor> tensors;
      data[rank].reserve(counts.size());
      for (const std::size_t count : counts) {
        std::vector<std::int64_t>& one = data[rank].emplace_back(count);
        for (std::size_t i = 0; i < count; ++i) one[i] = static_cast<std::int64_t>(i * 3 + rank + count);
        tensors.push_back({one.data(), count});
      }
      std::vector<Request> its = worlds_[rank].iall_reduce_bucketed(tensors, DataType::kInt64, ReduceOp::kSum, bucket);
      buckets = its.size();
      std::ranges::move(its, std::back_inserter(requests));
    }
    for (Request& request : requests) ASSERT_TRUE(request.wait(20s).ok()) << request.status().to_string();
    const bool is_one = bucket == std::size_t{1} << 20;
    if (bucket <= 1 || is_one) {
      EXPECT_EQ(buckets, is_one ? 1U : counts.size());
    }
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      for (std::size_t each = 0; each < counts.size(); ++each) {
        for (std::size_t i = 0; i < counts[each]; ++i) {
          const std::uint64_t of_all = size() * (i * 3 + counts[each]) + size() * (size() - 1) / 2;
          ASSERT_EQ(data[rank][each][i], static_cast<std::int64_t>(of_all)) << bucket;
        }
      }
    }
  }
}

TEST_P(Compressed, ListsThatAreCutDifferentlyAreAMisfit) {
  if (size() == 1) return;
  std::vector<std::int32_t> data(8 * size(), 1);
  std::vector<Request> requests;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    std::int32_t* const at = data.data() + std::size_t{8} * rank;
    const std::size_t first = rank == 0 ? 3 : 5;
    const std::vector<Tensor> tensors = {{at, first}, {at + first, 8 - first}};
    std::vector<Request> its = worlds_[rank].iall_reduce_bucketed(tensors, DataType::kInt32, ReduceOp::kSum);
    std::ranges::move(its, std::back_inserter(requests));
  }
  for (Request& request : requests) EXPECT_EQ(request.wait(20s).code(), Code::kInvalid);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Compressed, testing::Range(1U, 10U));

}  // namespace
}  // namespace hawser
