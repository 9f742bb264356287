#include "runtime/board_call.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/test_boards.h"

namespace hawser::runtime {
namespace {

class BoardCallTest : public testing::Test {
 protected:
  using Call = schedule::Call;
  using What = schedule::Operation;
  using Step = BoardCall::Step;
  using Values = std::vector<std::int32_t>;
  static constexpr std::uint32_t kRanks = 3;

  std::unique_ptr<BoardCall> begin(const Call& like, std::uint32_t rank, const Values& input, Values& output,
                                   std::uint64_t digest = 5) {
    Call& call = calls_.emplace_back(like);
    call.rank = rank;
    call.size = kRanks;
    call.element_bytes = 4;
    const BoardCall::Buffers buffers = {
        .input = reinterpret_cast<const std::byte*>(input.data()),
        .output = reinterpret_cast<std::byte*>(output.data()),
        .combine = [](void* out, const void* first, const void* second, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) {  // The order of ranks shows.
            static_cast<std::int32_t*>(out)[i] =
                10 * static_cast<const std::int32_t*>(first)[i] + static_cast<const std::int32_t*>(second)[i];
          }
        }};
    return std::make_unique<BoardCall>(boards_[rank], call, buffers, turn_, turn_ + 1, digest);
  }
  /// All ranks' outputs.
  std::vector<Values> run(const Call& call, const std::vector<Values>& inputs, std::size_t outputs) {
    std::vector<Values> all(kRanks, Values(outputs, -1));
    std::vector<std::unique_ptr<BoardCall>> calls;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) calls.push_back(begin(call, rank, inputs[rank], all[rank]));
    for (const auto& each : calls) EXPECT_EQ(each->go_on(), Step::kMoved);
    for (const auto& each : calls) {
      EXPECT_TRUE(each->has_news());
      EXPECT_EQ(each->go_on(), Step::kOver);
    }
    boards_.finish(turn_);
    ++turn_;
    return all;
  }

  std::deque<Call> calls_;
  TestBoards boards_{kRanks};
  std::uint64_t turn_ = 0;
};

TEST_F(BoardCallTest, EachOperationGivesWhatItMust) {
  const std::vector<Values> inputs = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  using All = std::vector<Values>;
  for (int round = 0; round < 3; ++round) {  // Slots are used again.
    EXPECT_EQ(run({.operation = What::kBarrier}, inputs, 1), All(3, {-1}));
    EXPECT_EQ(run({.operation = What::kAllReduce, .count = 3}, inputs, 3), All(3, {147, 258, 369}));
    EXPECT_EQ(run({.operation = What::kReduce, .root = 1, .count = 2}, inputs, 2),
              (All{{-1, -1}, {147, 258}, {-1, -1}}));
    EXPECT_EQ(run({.operation = What::kAllGather, .counts = {1, 0, 3}}, inputs, 4), All(3, {1, 7, 8, 9}));
    EXPECT_EQ(run({.operation = What::kReduceScatter, .counts = {1, 0, 2}}, inputs, 2),
              (All{{147, -1}, {-1, -1}, {258, 369}}));
    EXPECT_EQ(run({.operation = What::kGather, .root = 1, .counts = {1, 0, 3}}, inputs, 4),
              (All{{-1, -1, -1, -1}, {1, 7, 8, 9}, {-1, -1, -1, -1}}));
    EXPECT_EQ(run({.operation = What::kGather, .root = 0, .counts = {2, 1, 1}}, inputs, 4)[0], (Values{1, 2, 4, 7}));
    EXPECT_EQ(run({.operation = What::kScatter, .root = 2, .counts = {1, 0, 2}}, inputs, 2),
              (All{{7, -1}, {-1, -1}, {8, 9}}));
    EXPECT_EQ(run({.operation = What::kScan, .count = 2}, inputs, 2), (All{{1, 2}, {14, 25}, {147, 258}}));
    EXPECT_EQ(run({.operation = What::kExclusiveScan, .count = 2}, inputs, 2), (All{{1, 2}, {1, 2}, {14, 25}}));
    EXPECT_EQ(run({.operation = What::kAllReduce, .count = 0}, inputs, 1), All(3, {-1}));
  }
}

TEST_F(BoardCallTest, ABroadcastGivesTheRootsOutput) {
  std::vector<Values> all = {{1, 2}, {3, 4}, {5, 6}};
  std::vector<std::unique_ptr<BoardCall>> calls;
  const Call call = {.operation = What::kBroadcast, .root = 2, .count = 2};
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) calls.push_back(begin(call, rank, {}, all[rank]));
  for (const auto& each : calls) EXPECT_EQ(each->go_on(), Step::kMoved);
  for (const auto& each : calls) EXPECT_EQ(each->go_on(), Step::kOver);
  EXPECT_EQ(all, std::vector<Values>(3, {5, 6}));
}

TEST_F(BoardCallTest, InPlaceTheInputIsReadBeforeItIsWritten) {
  std::vector<Values> all = {{1}, {2}, {3}};
  std::vector<Values> gathered = {{1, 0, 0}, {0, 2, 0}, {0, 0, 3}};
  for (const What what : {What::kAllReduce, What::kAllGather}) {
    std::vector<std::unique_ptr<BoardCall>> calls;
    const Call call = {.operation = what, .count = 1, .counts = {1, 1, 1}, .has_input_in_output = true};
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      calls.push_back(begin(call, rank, {}, what == What::kAllReduce ? all[rank] : gathered[rank]));
    }
    for (const auto& each : calls) EXPECT_EQ(each->go_on(), Step::kMoved);
    for (const auto& each : calls) EXPECT_EQ(each->go_on(), Step::kOver);
    ++turn_;
  }
  EXPECT_EQ(all, std::vector<Values>(3, {123}));
  EXPECT_EQ(gathered, std::vector<Values>(3, {1, 2, 3}));
}

TEST_F(BoardCallTest, ItWaitsForAllAndNamesThem) {
  const Values in = {1};
  std::array<Values, 3> out = {Values(1), Values(1), Values(1)};
  const Call call = {.operation = What::kAllReduce, .count = 1};
  const auto first = begin(call, 0, in, out[0]);
  EXPECT_TRUE(first->has_news());
  EXPECT_EQ(first->go_on(), Step::kMoved);
  EXPECT_EQ(first->go_on(), Step::kWaits);
  EXPECT_FALSE(first->has_news());
  EXPECT_EQ(first->awaited(), (std::vector<std::uint32_t>{1, 2}));
  const auto last = begin(call, 2, in, out[2]);
  EXPECT_EQ(last->go_on(), Step::kMoved);
  EXPECT_EQ(first->awaited(), (std::vector<std::uint32_t>{1}));
  boards_.gone = 1;
  EXPECT_EQ(first->go_on(), Step::kWaits);
  EXPECT_EQ(first->out_of_sight(), 1U);
  boards_.gone = TestBoards::kNone;
  EXPECT_EQ(first->out_of_sight(), std::nullopt);
}

TEST_F(BoardCallTest, ItKnowsWhetherOneThatItWaitsForStandsOnACore) {
  const Values in = {1};
  std::array<Values, 3> out = {Values(1), Values(1), Values(1)};
  const Call call = {.operation = What::kAllReduce, .count = 1};
  const auto first = begin(call, 0, in, out[0]);
  boards_[0].stand_on(4);
  boards_[1].stand_on(5);
  boards_[2].stand_on(6);
  EXPECT_EQ(first->go_on(), Step::kMoved);
  EXPECT_EQ(first->go_on(), Step::kWaits);
  EXPECT_TRUE(first->awaits_one_on(5));
  EXPECT_TRUE(first->awaits_one_on(6));
  EXPECT_FALSE(first->awaits_one_on(4)) << "it does not wait for itself";
  const auto last = begin(call, 2, in, out[2]);
  EXPECT_EQ(last->go_on(), Step::kMoved);
  EXPECT_FALSE(first->awaits_one_on(6)) << "that one has written";
  boards_[1].stand_on(4);  // It has moved.
  EXPECT_FALSE(first->awaits_one_on(5));
  EXPECT_TRUE(first->awaits_one_on(4));
}

TEST_F(BoardCallTest, AnotherCallIsFoundOnAllRanksThatReadIt) {
  const Values in = {1};
  std::array<Values, 3> out = {Values(1), Values(1), Values(1)};
  const Call call = {.operation = What::kAllReduce, .count = 1};
  std::vector<std::unique_ptr<BoardCall>> calls;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    calls.push_back(begin(call, rank, in, out[rank], rank == 1 ? 6 : 5));
  for (const auto& each : calls) EXPECT_EQ(each->go_on(), Step::kMoved);
  for (const auto& each : calls) EXPECT_EQ(each->go_on(), Step::kDiffers);
  EXPECT_EQ(calls[0]->culprit(), 1U);
  EXPECT_EQ(calls[1]->culprit(), 0U);
  EXPECT_EQ(calls[2]->culprit(), 1U);
}

TEST_F(BoardCallTest, OtherBytesThanTheCallHasAreBad) {
  const Values in = {1, 2};
  std::array<Values, 3> out = {Values(2), Values(2), Values(2)};
  const auto one = begin({.operation = What::kAllReduce, .count = 1}, 0, in, out[0]);
  const auto two = begin({.operation = What::kAllReduce, .count = 2}, 1, in, out[1]);
  EXPECT_EQ(one->go_on(), Step::kMoved);
  EXPECT_EQ(two->go_on(), Step::kMoved);
  EXPECT_EQ(one->go_on(), Step::kBad);
  EXPECT_EQ(one->culprit(), 1U);
}

TEST_F(BoardCallTest, NobodyWritesWhereOthersStillRead) {
  const Values in = {1};
  Values out(1);
  for (std::uint64_t turn = 0; turn < kBoardSlots; ++turn, ++turn_) {
    EXPECT_EQ(begin({.operation = What::kBarrier}, 0, in, out)->go_on(), Step::kMoved);
  }
  const auto next = begin({.operation = What::kBarrier}, 0, in, out);
  EXPECT_EQ(next->go_on(), Step::kWaits);
  EXPECT_FALSE(next->has_news());
  EXPECT_EQ(next->awaited(), (std::vector<std::uint32_t>{1, 2}));
  boards_.finish(0);
  EXPECT_TRUE(next->has_news());
  EXPECT_EQ(next->go_on(), Step::kMoved);
}

}  // namespace
}  // namespace hawser::runtime
