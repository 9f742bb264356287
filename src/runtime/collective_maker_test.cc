#include "runtime/collective_maker.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "runtime/test_ranks.h"

namespace hawser::runtime {
namespace {

using What = schedule::Operation;

/// Rank 1 of a world of three.
class CollectiveMakerTest : public TestRanks {
 protected:
  CollectiveMakerTest() {
    maker_.open({.world = 5,
                 .name = "w",
                 .rank = 1,
                 .ranks = ranks_,
                 .mailbox = &mailbox_,
                 .map =
                     [this](const CollectiveCall&) {
                       ++mapped_;
                       return std::unique_ptr<MappedCall>();
                     },
                 .room =
                     [this] {
                       ++rooms_;
                       return static_cast<BoardRoom*>(nullptr);
                     }});
  }
  CollectiveCall all_reduce(std::uint64_t count, ReduceOp op = ReduceOp::kSum) {
    return {.call = {.operation = What::kAllReduce, .count = count},
            .input = input_.data(),
            .output = output_.data(),
            .type = DataType::kFloat32,
            .op = op};
  }
  std::string error_of(CollectiveCall call, const CollectiveOptions& options = {}) {
    const CollectiveMaker::Made made = maker_.make(std::move(call), options);
    return made ? std::string() : std::string(made.error().message());
  }

  CollectiveMaker maker_;
  std::vector<float> input_ = std::vector<float>(64), output_ = std::vector<float>(64);
  int mapped_ = 0, rooms_ = 0;
};

TEST_F(CollectiveMakerTest, BadCallsAreNamed) {
  EXPECT_EQ(error_of({.call = {.operation = What::kBroadcast, .root = 3}}),
            "broadcast: world 'w' has no rank 3, its ranks are 0 to 2");
  EXPECT_EQ(error_of({.call = {.operation = What::kBroadcast, .root = 2}}), "");
  CollectiveCall typeless = all_reduce(1);
  typeless.type = static_cast<DataType>(200);
  EXPECT_EQ(error_of(typeless), "all_reduce: there is no such type of elements");
  EXPECT_NE(error_of(all_reduce(1, ReduceOp::kXor)).find("is not defined"), std::string::npos);
  CollectiveCall scan = all_reduce(1, ReduceOp::kAvg);
  scan.call.operation = What::kScan;
  EXPECT_NE(error_of(scan).find("no average of a prefix"), std::string::npos);
  CollectiveCall gather{.call = {.operation = What::kAllGather, .counts = {1, 1}}};
  EXPECT_EQ(error_of(gather), "all_gather: there must be a count for each of the 3 ranks");
}

TEST_F(CollectiveMakerTest, CountsHaveALimit) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 56) / 3;
  EXPECT_EQ(error_of(all_reduce(kMost)), "");
  EXPECT_EQ(error_of(all_reduce(kMost + 1)), "all_reduce: a count is above " + std::to_string(kMost));
}

TEST_F(CollectiveMakerTest, OneThatIsMadeKnowsItsWorldAndItsElements) {
  const auto made = maker_.make(all_reduce(8, ReduceOp::kAvg), {}).value();
  EXPECT_EQ(made->name, "all_reduce");
  EXPECT_EQ(made->world, 5U);
  EXPECT_EQ(made->elements.bytes, 4U);
  EXPECT_EQ(made->ranks.size(), 3U);
  EXPECT_TRUE(made->elements.finish) << "an average is divided at last";
  EXPECT_FALSE(maker_.make(all_reduce(8), {}).value()->elements.finish);
  EXPECT_NE(made->digest, maker_.make(all_reduce(9, ReduceOp::kAvg), {}).value()->digest);
}

TEST_F(CollectiveMakerTest, BoardsAndMappedMemoryAreForRanksThatShareHosts) {
  (void)maker_.make(all_reduce(1), {}).value();
  EXPECT_EQ(rooms_ + mapped_, 0) << "nobody knows who is where";
  EXPECT_TRUE(maker_.hosts().empty());
  maker_.know_hosts({7, 7, 7});
  EXPECT_EQ(maker_.hosts(), (std::vector<std::uint32_t>{0, 0, 0}));
  (void)maker_.make(all_reduce(1), {}).value();
  EXPECT_EQ(rooms_, 1);
  (void)maker_.make(all_reduce(1), {.reproducible = true}).value();
  EXPECT_EQ(rooms_, 1);
  (void)maker_.make(all_reduce(1 << 22), {}).value();
  EXPECT_EQ(mapped_, 1);
  EXPECT_EQ(rooms_, 2) << "they meet on boards";
  maker_.know_hosts({7, 9, 7});
  EXPECT_EQ(maker_.hosts(), (std::vector<std::uint32_t>{0, 1, 0}));
  (void)maker_.make(all_reduce(1), {}).value();
  (void)maker_.make(all_reduce(1 << 22), {}).value();
  EXPECT_EQ(rooms_, 4) << "ranks 0 and 2 have boards";
  EXPECT_EQ(mapped_, 1) << "host 9 has one rank, so there are no slices";
  maker_.know_hosts({7, 8, 9});
  (void)maker_.make(all_reduce(1), {}).value();
  (void)maker_.make(all_reduce(1 << 22), {}).value();
  EXPECT_EQ(rooms_ + mapped_, 5);
}

TEST_F(CollectiveMakerTest, ABucketTakesWhatFits) {
  float memory[8] = {};
  const std::array<Tensor, 4> tensors = {Tensor{memory, 2}, Tensor{memory, 2}, Tensor{memory, 3}, Tensor{memory, 0}};
  const auto taken = [&](std::size_t bytes) { return CollectiveMaker::bucket_of(tensors, DataType::kFloat32, bytes); };
  EXPECT_EQ(taken(0), 1U) << "at least one";
  EXPECT_EQ(taken(15), 1U);
  EXPECT_EQ(taken(16), 2U);
  EXPECT_EQ(taken(27), 2U);
  EXPECT_EQ(taken(32), 4U);
}

TEST_F(CollectiveMakerTest, TensorsThatGoTogetherAreCopiedAndCopiedBack) {
  float a[2] = {1, 2}, b[1] = {3};
  const std::array<Tensor, 2> tensors = {Tensor{a, 2}, Tensor{b, 1}};
  const auto made = maker_.make_bucket(tensors, DataType::kFloat32, ReduceOp::kSum, {}).value();
  auto* const together = reinterpret_cast<float*>(made->elements.output);
  EXPECT_EQ(std::vector<float>(together, together + 3), (std::vector<float>{1, 2, 3}));
  for (int i = 0; i < 3; ++i) together[i] *= 10;
  ASSERT_TRUE(made->elements.finish().ok());
  EXPECT_EQ(a[1], 20);
  EXPECT_EQ(b[0], 30);
  const std::array<Tensor, 2> bad = {Tensor{a, 2}, Tensor{nullptr, 1}};
  EXPECT_EQ(maker_.make_bucket(bad, DataType::kFloat32, ReduceOp::kSum, {}).error().message(),
            "all_reduce: a tensor is null");
}

TEST_F(CollectiveMakerTest, OnlySumsOfOneTensorAreCompressed) {
  const CollectiveOptions options = {.compress = Compressor::int8()};
  EXPECT_NE(error_of(all_reduce(8, ReduceOp::kMax), options).find("is not compressed"), std::string::npos);
  CollectiveCall broadcast = all_reduce(8);
  broadcast.call.operation = What::kBroadcast;
  EXPECT_EQ(error_of(broadcast, options), "broadcast: only an all_reduce compresses");
  CollectiveCall null = all_reduce(8);
  null.input = nullptr;
  EXPECT_EQ(error_of(null, options), "all_reduce: a buffer is null");
  EXPECT_EQ(maker_.make(all_reduce(8), options).value()->name, "all_reduce");
}

}  // namespace
}  // namespace hawser::runtime
