#include "runtime/exchange_call.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/test_boards.h"

namespace hawser::runtime {
namespace {

constexpr std::uint32_t kRanks = 3;
using Counts = std::vector<std::uint64_t>;
using Values = std::vector<std::int32_t>;

class ExchangeCallTest : public testing::Test {
 protected:
  using Step = BoardPhase::Step;

  /// `counts[from][to]`.
  void begin(const std::array<Counts, kRanks>& counts) {
    phases_.clear();
    calls_.clear();
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      Counts come;
      for (const Counts& each : counts) come.push_back(each[rank]);
      begin_one(rank, counts[rank], come);
    }
  }
  ExchangeCall& begin_one(std::uint32_t rank, const Counts& go, const Counts& come) {
    inputs_[rank].clear();
    for (std::uint32_t to = 0; to < kRanks; ++to) {
      for (std::uint64_t i = 0; i < go[to]; ++i) {
        inputs_[rank].push_back(value(rank, to, i));
      }
    }
    outputs_[rank].assign(std::accumulate(come.begin(), come.end(), std::uint64_t{0}), -1);
    const schedule::Call& call = calls_.emplace_back(schedule::Call{.operation = schedule::Operation::kAllToAll,
                                                                    .rank = rank,
                                                                    .size = kRanks,
                                                                    .counts = go,
                                                                    .in_counts = come,
                                                                    .element_bytes = 4,
                                                                    .piece_bytes = piece_bytes_});
    const BoardPhase::Buffers buffers = {.input = reinterpret_cast<const std::byte*>(inputs_[rank].data()),
                                         .output = reinterpret_cast<std::byte*>(outputs_[rank].data()),
                                         .combine = {}};
    phases_.push_back(std::make_unique<ExchangeCall>(boards_[rank], call, buffers, turn_, 1, 5));
    return *phases_.back();
  }
  static std::int32_t value(std::uint32_t from, std::uint32_t to, std::uint64_t i) {
    return static_cast<std::int32_t>(from * 10'000 + to * 1'000 + i);
  }
  /// All write, and all look: each has to give `last`.
  void run(Step last = Step::kOver) {
    for (const auto& each : phases_) ASSERT_EQ(each->go_on(), Step::kMoved);
    for (const auto& each : phases_) {
      EXPECT_TRUE(each->has_news());
      EXPECT_EQ(each->go_on(), last);
    }
    boards_.finish(turn_++);
  }
  void expect_all(const std::array<Counts, kRanks>& counts) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(phases_[rank]->has_all());
      Values right;
      for (std::uint32_t from = 0; from < kRanks; ++from) {
        for (std::uint64_t i = 0; i < counts[from][rank]; ++i) right.push_back(value(from, rank, i));
      }
      EXPECT_EQ(outputs_[rank], right) << rank;
    }
  }
  void expect_none() {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_FALSE(phases_[rank]->has_all());
      EXPECT_EQ(outputs_[rank], Values(outputs_[rank].size(), -1)) << "the output is as it was";
    }
  }

  TestBoards boards_{kRanks};
  std::uint64_t turn_ = 0, piece_bytes_ = schedule::kBoardBytesMax;
  std::deque<schedule::Call> calls_;
  std::array<Values, kRanks> inputs_, outputs_;
  std::vector<std::unique_ptr<ExchangeCall>> phases_;
};

TEST_F(ExchangeCallTest, SmallBlocksComeWithTheCounts) {
  const std::array<std::array<Counts, kRanks>, 3> calls = {{
      {Counts{1, 2, 3}, Counts{4, 5, 6}, Counts{7, 8, 9}},
      {Counts{0, 2, 0}, Counts{0, 0, 0}, Counts{100, 0, 1}},
      {Counts{0, 0, 0}, Counts{0, 0, 0}, Counts{0, 0, 0}},
  }};
  for (const auto& counts : calls) {
    begin(counts);
    run();
    expect_all(counts);
  }
}

TEST_F(ExchangeCallTest, OnceOneRankHasTooMuchOnlyTheCountsCome) {
  constexpr std::uint64_t kLetter = 2 * 8 * kRanks;
  piece_bytes_ = kLetter + 40;
  std::array<Counts, kRanks> counts = {Counts{1, 1, 1}, Counts{4, 5, 1}, Counts{0, 0, 0}};
  begin(counts);
  run();
  expect_all(counts);
  counts[1] = {4, 5, 2};
  begin(counts);
  run();
  expect_none();
  for (const auto& each : phases_) {
    EXPECT_EQ(each->counts().first_difference(), std::nullopt);
    EXPECT_EQ(each->counts().sent(1, 2), 2U);
  }
  piece_bytes_ = kLetter;  // Not one element.
  counts = {Counts{0, 0, 0}, Counts{0, 0, 0}, Counts{0, 1, 0}};
  begin(counts);
  run();
  expect_none();
}

TEST_F(ExchangeCallTest, RanksThatDifferGetNothingAndKnowIt) {
  begin_one(0, {1, 2, 3}, {1, 1, 1});
  begin_one(1, {1, 1, 1}, {2, 1, 1});
  begin_one(2, {1, 1, 1}, {4, 1, 1});
  run();
  expect_none();
  for (const auto& each : phases_) EXPECT_EQ(each->counts().first_difference(), (std::pair(0U, 2U)));
}

/// Only a rank of another program can do so.
TEST_F(ExchangeCallTest, ABoardWithOtherBytesThanItsCountsSayIsBad) {
  const std::uint64_t huge = ~std::uint64_t{0};
  for (const Counts& claimed : {Counts{1, 1, 2}, Counts{1, 1, 0}, Counts{huge, 1, 1}, Counts{1, huge, 2}}) {
    for (const std::uint64_t blocks : {12, 11, 13, 0}) {
      phases_.clear();
      calls_.clear();
      for (std::uint32_t rank = 0; rank < 2; ++rank)
        ASSERT_EQ(begin_one(rank, {1, 1, 1}, {1, 1, 1}).go_on(), Step::kMoved);
      std::vector<std::uint64_t> letter = claimed;
      letter.insert(letter.end(), 3, 1);
      std::byte* const place = boards_[2].room(turn_).data();
      std::memcpy(place, letter.data(), letter.size() * 8);
      boards_[2].publish(turn_, 1, 5, letter.size() * 8 + blocks);
      const bool fits = claimed[0] != huge && claimed[1] != huge;
      const std::uint64_t right = fits ? (claimed[0] + claimed[1] + claimed[2]) * 4 : 0;
      const Step seen = phases_[0]->go_on();
      EXPECT_EQ(seen, blocks == right ? Step::kOver : Step::kBad) << claimed[0] << " " << blocks;
      if (seen == Step::kBad) {
        EXPECT_EQ(phases_[0]->culprit(), 2U);
      }
      EXPECT_EQ(outputs_[0], Values(3, -1));
      boards_.finish(turn_++);
    }
  }
  begin_one(0, {1, 1, 1}, {1, 1, 1});
  ASSERT_EQ(phases_.back()->go_on(), Step::kMoved);
  for (const std::uint32_t rank : {1U, 2U}) boards_[rank].publish(turn_, 1, 5, 2 * 8 * kRanks - 1);
  EXPECT_EQ(phases_.back()->go_on(), Step::kBad) << "less than the counts take";
}

TEST_F(ExchangeCallTest, WaitsForTheOthersAndForItsSlot) {
  const std::array<Counts, kRanks> counts = {Counts{1, 1, 1}, Counts{1, 1, 1}, Counts{1, 1, 1}};
  begin(counts);
  ASSERT_EQ(phases_[0]->go_on(), Step::kMoved);
  EXPECT_EQ(phases_[0]->go_on(), Step::kWaits);
  EXPECT_FALSE(phases_[0]->has_news());
  EXPECT_EQ(phases_[0]->awaited(), (std::vector<std::uint32_t>{1, 2}));
  ASSERT_EQ(phases_[1]->go_on(), Step::kMoved);
  EXPECT_EQ(phases_[0]->awaited(), std::vector<std::uint32_t>{2});
  ASSERT_EQ(phases_[2]->go_on(), Step::kMoved);
  boards_.gone = 1;
  EXPECT_EQ(phases_[0]->go_on(), Step::kWaits);
  EXPECT_EQ(phases_[0]->out_of_sight(), 1U);
  boards_.gone = TestBoards::kNone;
  EXPECT_EQ(phases_[0]->go_on(), Step::kOver);
  turn_ += kBoardSlots;
  begin(counts);
  EXPECT_EQ(phases_[0]->go_on(), Step::kWaits) << "the slot is still read";
  EXPECT_EQ(phases_[0]->awaited(), (std::vector<std::uint32_t>{1, 2}));
  boards_.finish(0);
  EXPECT_TRUE(phases_[0]->has_news());
  EXPECT_EQ(phases_[0]->go_on(), Step::kMoved);
}

TEST_F(ExchangeCallTest, AnotherOneGoesOnFromWhatIsWritten) {
  const std::array<Counts, kRanks> counts = {Counts{1, 2, 3}, Counts{4, 5, 6}, Counts{7, 8, 9}};
  begin(counts);
  for (const auto& each : phases_) ASSERT_EQ(each->go_on(), Step::kMoved);
  const BoardPhase::Buffers buffers = {
      .input = nullptr, .output = reinterpret_cast<std::byte*>(outputs_[1].data()), .combine = {}};
  ExchangeCall other(boards_[1], calls_[1], buffers, turn_, 1, 5);
  other.note_written();
  EXPECT_EQ(other.go_on(), Step::kOver);
  EXPECT_TRUE(other.has_all());
  EXPECT_EQ(outputs_[1][0], value(0, 1, 0));
}

}  // namespace
}  // namespace hawser::runtime
