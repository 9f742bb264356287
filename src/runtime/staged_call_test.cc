#include "runtime/staged_call.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "runtime/test_boards.h"

namespace hawser::runtime {
namespace {

class StagedCallTest : public testing::Test {
 protected:
  using Call = schedule::Call;
  using What = schedule::Operation;
  using Step = BoardPhase::Step;
  using Values = std::vector<std::int32_t>;
  static constexpr std::uint32_t kRanks = 3;
  static constexpr std::uint64_t kFirstTurn = 2;

  StagedCallTest() { open_boards(); }
  /// New ones.
  void open_boards() {
    ranks_.clear();
    boards_.open();
    boards_.finish(0, kFirstTurn);
  }
  void begin(const Call& like, std::uint32_t rank, const Values& input, Values& output, std::uint64_t digest = 5) {
    Call& call = calls_.emplace_back(like);
    call.rank = rank;
    call.size = kRanks;
    call.element_bytes = 4;
    call.may_use_boards = true;
    call.piece_bytes = 2 * kRanks * 4;  // Two elements of each share.
    const BoardPhase::Buffers buffers = {
        .input = reinterpret_cast<const std::byte*>(input.data()),
        .output = reinterpret_cast<std::byte*>(output.data()),
        .combine = [this](void* out, const void* first, const void* second, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) {
            static_cast<std::int32_t*>(out)[i] =
                static_cast<const std::int32_t*>(first)[i] + static_cast<const std::int32_t*>(second)[i];
          }
          if (during_combine_) during_combine_();
        }};
    ranks_.push_back(
        std::make_unique<StagedCall>(boards_[rank], call, schedule::AllCounts(), buffers, kFirstTurn, 4, digest));
  }
  void begin_all(const Call& like, const std::vector<Values>& inputs, std::vector<Values>& outputs) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) begin(like, rank, inputs[rank], outputs[rank]);
  }
  /// In an order that the seed decides, until all are over.
  void run(std::uint64_t seed) {
    base::Rng rng(seed);
    std::size_t over = 0;
    std::array<bool, kRanks> is_over = {};
    for (int steps = 0; over < kRanks; ++steps) {
      ASSERT_LT(steps, 100'000) << "it stands still";
      const std::size_t rank = rng.below(kRanks);
      if (is_over[rank]) continue;
      const bool had_news = ranks_[rank]->has_news();
      const Step step = ranks_[rank]->go_on();
      ASSERT_TRUE(step == Step::kWaits || step == Step::kMoved || step == Step::kOver);
      EXPECT_TRUE(had_news || step != Step::kMoved);
      EXPECT_TRUE(!ranks_[rank]->has_news() || step != Step::kWaits);
      EXPECT_TRUE(!ranks_[rank]->awaited().empty() || step != Step::kWaits);
      is_over[rank] = step == Step::kOver;
      over += is_over[rank] ? 1 : 0;
    }
  }
  /// It writes what it can, and then waits.
  void play(std::size_t rank) {
    for (int i = 0; i < 100; ++i) {
      if (ranks_[rank]->go_on() != Step::kMoved) return;
    }
    FAIL() << "it waits for nobody";
  }

  std::deque<Call> calls_;
  TestBoards boards_{kRanks};
  std::vector<std::unique_ptr<StagedCall>> ranks_;
  std::function<void()> during_combine_;
};

constexpr std::size_t kElements = 53;

TEST_F(StagedCallTest, GivesTheResultInAnyOrderOfRanks) {
  std::vector<Values> in(kRanks, Values(kElements)), sums(kRanks, Values(kElements)), gathered(kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t i = 0; i < kElements; ++i) {
      in[rank][i] = static_cast<std::int32_t>(1000 * rank + i);
      for (Values& each : sums) each[i] += in[rank][i];
    }
    for (Values& each : gathered) each.insert(each.end(), in[rank].begin(), in[rank].end());
  }
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<Values> out = in;
    begin_all({.operation = What::kAllReduce, .count = kElements, .has_input_in_output = true},
              std::vector(kRanks, Values()), out);
    run(seed);
    ASSERT_EQ(out, sums);
    open_boards();
    std::vector<Values> all(kRanks, Values(kRanks * kElements));
    begin_all({.operation = What::kAllGather, .counts = {kElements, kElements, kElements}}, in, all);
    run(seed);
    ASSERT_EQ(all, gathered);
    open_boards();
  }
}

TEST_F(StagedCallTest, WritesAheadAsLongAsItHasSlots) {
  const Values in;
  std::vector<Values> out(kRanks, Values(kElements));
  const Call call = {.operation = What::kBroadcast, .root = 0, .count = kElements};
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) begin(call, rank, in, out[rank]);
  std::size_t written = 0;
  while (ranks_[0]->go_on() == Step::kMoved) ++written;
  EXPECT_EQ(written, kBoardSlots);
  EXPECT_EQ(ranks_[0]->awaited(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(ranks_[0]->moved(), 4 * kBoardSlots * 2 * kRanks);
  play(1);
  EXPECT_EQ(ranks_[0]->go_on(), Step::kWaits) << "rank 1 waits for rank 2, too";
  play(2);
  EXPECT_EQ(ranks_[0]->awaited(), (std::vector<std::uint32_t>{1}));
  play(1);
  EXPECT_TRUE(ranks_[0]->has_news());
}

TEST_F(StagedCallTest, ItKnowsWhetherOneThatItWaitsForStandsOnACore) {
  const std::vector<Values> all_in(kRanks, Values(kElements));
  std::vector<Values> out(kRanks, Values(kElements));
  begin_all({.operation = What::kAllReduce, .count = kElements}, all_in, out);
  boards_[1].stand_on(5);
  play(0);
  EXPECT_TRUE(ranks_[0]->awaits_one_on(5));
  EXPECT_FALSE(ranks_[0]->awaits_one_on(6));
}

TEST_F(StagedCallTest, AnotherCallIsFoundInItsFirstPiece) {
  const Values in(kElements);
  std::vector<Values> out(kRanks, Values(kElements));
  const Call call = {.operation = What::kAllReduce, .count = kElements};
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) begin(call, rank, in, out[rank], rank == 1 ? 6 : 5);
  const auto last_step = [&](std::size_t rank) {
    for (;;) {
      const Step step = ranks_[rank]->go_on();
      if (step != Step::kMoved) return step;
    }
  };
  EXPECT_EQ(last_step(0), Step::kWaits);
  EXPECT_EQ(last_step(1), Step::kDiffers);
  EXPECT_EQ(ranks_[1]->culprit(), 0U);
  EXPECT_EQ(last_step(0), Step::kDiffers);
  EXPECT_EQ(ranks_[0]->culprit(), 1U);
}

TEST_F(StagedCallTest, ABoardThatHasGoneEndsIt) {
  const std::vector<Values> all_in(kRanks, Values(kElements, 1));
  std::vector<Values> out(kRanks, Values(kElements));
  begin_all({.operation = What::kAllReduce, .count = kElements}, all_in, out);
  for (std::size_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks_[rank]->go_on(), Step::kMoved);
  boards_.gone = 2;
  play(0);
  EXPECT_FALSE(ranks_[0]->has_news());
  EXPECT_EQ(ranks_[0]->out_of_sight(), 2U);
}

TEST_F(StagedCallTest, ABoardThatGoesWhileItIsReadIsFound) {
  const std::vector<Values> all_in(kRanks, Values(kElements, 1));
  std::vector<Values> out(kRanks, Values(kElements));
  begin_all({.operation = What::kAllReduce, .count = kElements}, all_in, out);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks_[rank]->go_on(), Step::kMoved);
    EXPECT_EQ(ranks_[rank]->go_on(), Step::kMoved);
  }
  during_combine_ = [this] { boards_.gone = 2; };
  EXPECT_EQ(ranks_[0]->go_on(), Step::kWaits) << "its sums count for nothing";
  EXPECT_EQ(ranks_[0]->go_on(), Step::kWaits);
  EXPECT_FALSE(ranks_[0]->has_news());
  EXPECT_EQ(ranks_[0]->out_of_sight(), 2U);
  boards_.gone = TestBoards::kNone;  // It was there, and yet not what this rank had seen.
  EXPECT_TRUE(ranks_[0]->has_news());
  EXPECT_EQ(ranks_[0]->go_on(), Step::kBad);
  EXPECT_EQ(ranks_[0]->culprit(), 2U);
}

TEST_F(StagedCallTest, OtherBytesThanTheCallHasAreBad) {
  const Values in(kElements);
  std::vector<Values> out(kRanks, Values(kElements));
  begin({.operation = What::kAllReduce, .count = 1}, 0, in, out[0]);
  begin({.operation = What::kAllReduce, .count = 2}, 1, in, out[1]);
  EXPECT_EQ(ranks_[1]->go_on(), Step::kMoved);
  EXPECT_EQ(ranks_[0]->go_on(), Step::kMoved);
  EXPECT_EQ(ranks_[0]->go_on(), Step::kBad);
  EXPECT_EQ(ranks_[0]->culprit(), 1U);
}

}  // namespace
}  // namespace hawser::runtime
