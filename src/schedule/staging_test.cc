#include "schedule/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace hawser::schedule {
namespace {

using Values = std::vector<std::uint64_t>;

std::uint64_t value(std::uint32_t rank, std::uint64_t index) { return (rank + 1) * 1'000'003ULL + index * index + 7; }

/// All ranks of one call, piece after piece, over boards in memory.
class StagedRanks {
 public:
  StagedRanks(const Call& like, const std::vector<Values>& inputs, const std::vector<Values>& outputs)
      : inputs_(inputs), outputs_(outputs) {
    calls_.assign(like.size, like);
    for (std::uint32_t rank = 0; rank < like.size; ++rank) calls_[rank].rank = rank;
  }
  StagedRanks(std::vector<Call> calls, const std::vector<Values>& inputs, const std::vector<Values>& outputs)
      : calls_(std::move(calls)), inputs_(inputs), outputs_(outputs) {}
  AllCounts told() const {
    AllCounts all(calls_[0].size);
    all.letters().clear();
    for (const Call& call : calls_) std::ranges::copy(AllCounts::letter(call), std::back_inserter(all.letters()));
    return all;
  }
  std::vector<Values> run() {
    std::vector<Staging> all;
    const bool is_exchange = calls_[0].operation == Operation::kAllToAll;
    for (const Call& call : calls_) all.emplace_back(call, is_exchange ? told() : AllCounts());
    const auto size = static_cast<std::uint32_t>(calls_.size());
    const std::uint64_t most = calls_[0].piece_bytes / calls_[0].element_bytes;
    for (std::uint64_t piece = 0; piece < all[0].pieces(); ++piece) {
      std::vector<Values> boards(size), sums(size);
      const auto play = [&](std::uint32_t rank, const std::vector<Step>& steps, const std::vector<Values>& read,
                            Values* own, std::uint64_t written) {
        if (own != nullptr) own->assign(written, 0);
        for (const Step& step : steps) play_one(rank, step, read, own);
      };
      std::vector<Step> steps;
      for (std::uint32_t rank = 0; rank < size; ++rank, steps.clear()) {
        EXPECT_EQ(all[rank].pieces(), all[0].pieces()) << "all ranks take as many turns";
        EXPECT_LE(all[rank].written(piece, rank), most);
        for (std::uint32_t other = 0; other < size; ++other) {
          EXPECT_EQ(all[other].written(piece, rank), all[rank].written(piece, rank)) << "all know what a rank writes";
        }
        all[rank].write(piece, steps);
        play(rank, steps, {}, &boards[rank], all[rank].written(piece, rank));
      }
      for (std::uint32_t rank = 0; all[0].has_sums() && rank < size; ++rank, steps.clear()) {
        EXPECT_LE(all[rank].summed(piece, rank), most);
        EXPECT_EQ(all[(rank + 1) % size].summed(piece, rank), all[rank].summed(piece, rank));
        all[rank].sum(piece, steps);
        scratch_.assign(all[rank].scratch(), 0);
        play(rank, steps, boards, &sums[rank], all[rank].summed(piece, rank));
      }
      for (std::uint32_t rank = 0; rank < size; ++rank, steps.clear()) {
        all[rank].take(piece, steps);
        play(rank, steps, all[0].has_sums() ? sums : boards, nullptr, 0);
      }
    }
    return outputs_;
  }

 private:
  void play_one(std::uint32_t rank, const Step& step, const std::vector<Values>& read, Values* own) {
    const auto at = [&](const Slice& slice, std::uint64_t index) -> std::uint64_t& {
      if (slice.buffer == Buffer::kBoard) return own->at(slice.at + index);
      if (slice.buffer == Buffer::kScratch) return scratch_.at(slice.at + index);
      return (slice.buffer == Buffer::kInput ? inputs_ : outputs_)[rank].at(slice.at + index);
    };
    for (std::uint64_t i = 0; i < step.to.count; ++i) {
      switch (step.action) {
        case Action::kCopy:
          at(step.to, i) = at(step.from, i);
          break;
        case Action::kRead:
          at(step.to, i) = read.at(step.peer).at(step.there.at + i);
          break;
        case Action::kCombineRead:
          at(step.to, i) = at(step.from, i) + read.at(step.peer).at(step.there.at + i);
          break;
        default:
          ADD_FAILURE() << "no such step here";
      }
    }
  }

  std::vector<Call> calls_;
  std::vector<Values> inputs_, outputs_;
  Values scratch_;
};

class StagingTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  /// Odd ones, and one of 0.
  std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> all;
    for (std::uint32_t rank = 0; rank < size_; ++rank) all.push_back(rank == 1 ? 0 : 5 + 3 * rank);
    return all;
  }
  Values input(std::uint32_t rank, std::uint64_t count) const {
    Values all(count);
    for (std::uint64_t i = 0; i < count; ++i) all[i] = value(rank, i);
    return all;
  }
  std::vector<Values> inputs(std::uint64_t count) const {
    std::vector<Values> all;
    for (std::uint32_t rank = 0; rank < size_; ++rank) all.push_back(input(rank, count));
    return all;
  }
  std::uint64_t sum(std::uint64_t index) const {
    std::uint64_t all = 0;
    for (std::uint32_t rank = 0; rank < size_; ++rank) all += value(rank, index);
    return all;
  }
  Call call(Operation operation, std::uint64_t each) const {
    return {.operation = operation,
            .size = size_,
            .root = size_ - 1,
            .element_bytes = 4,
            .may_use_boards = true,
            .piece_bytes = 4 * each * size_ + 3};
  }
  const std::uint32_t size_ = GetParam();
};

TEST_P(StagingTest, ATensorIsCombinedForAllOrForTheRoot) {
  for (const Operation operation : {Operation::kAllReduce, Operation::kReduce}) {
    for (const bool in_place : {false, true}) {
      for (const std::uint64_t count : {1U, 7U, 40U, 131U}) {
        Call each = call(operation, 3);
        each.count = count;
        each.has_input_in_output = in_place;
        ASSERT_TRUE(fits_staging(each));
        const std::vector<Values> in = inputs(count);
        std::vector<Values> want = in_place ? in : std::vector<Values>(size_, Values(count));
        const std::vector<Values> out = StagedRanks(each, in, want).run();
        for (std::uint32_t rank = 0; rank < size_; ++rank) {
          const bool gets_it = operation == Operation::kAllReduce || rank == each.root;
          for (std::uint64_t i = 0; gets_it && i < count; ++i) want[rank][i] = sum(i);
        }
        EXPECT_EQ(out, want) << to_string(operation) << ' ' << count << (in_place ? " in place" : "");
      }
    }
  }
}

TEST_P(StagingTest, BlocksAreCombinedForTheirRanks) {
  Call each = call(Operation::kReduceScatter, 2);
  each.counts = counts();
  const Blocks blocks(each.counts);
  std::vector<Values> want;
  for (std::uint32_t rank = 0; rank < size_; ++rank) want.emplace_back(blocks.count(rank));
  const std::vector<Values> out = StagedRanks(each, inputs(blocks.total()), want).run();
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    for (std::uint64_t i = 0; i < blocks.count(rank); ++i) want[rank][i] = sum(blocks.at(rank) + i);
  }
  EXPECT_EQ(out, want);
}

TEST_P(StagingTest, BlocksComeToAllOrToTheRoot) {
  for (const Operation operation : {Operation::kAllGather, Operation::kGather}) {
    for (const bool in_place : {false, true}) {
      Call each = call(operation, 1);
      each.counts = counts();
      each.has_input_in_output = in_place;
      const Blocks blocks(each.counts);
      const auto gets_it = [&](std::uint32_t rank) { return operation == Operation::kAllGather || rank == each.root; };
      std::vector<Values> in, before, want;
      for (std::uint32_t rank = 0; rank < size_; ++rank) {
        in.push_back(input(rank, blocks.count(rank)));
        Values own(gets_it(rank) ? blocks.total() : 0), all;
        if (in_place && gets_it(rank)) {
          std::ranges::copy(in[rank], own.begin() + static_cast<std::ptrdiff_t>(blocks.at(rank)));
        }
        before.push_back(own);
        for (std::uint32_t other = 0; gets_it(rank) && other < size_; ++other) {
          std::ranges::copy(input(other, blocks.count(other)), std::back_inserter(all));
        }
        want.push_back(all);
      }
      EXPECT_EQ(StagedRanks(each, in, before).run(), want) << to_string(operation) << (in_place ? " in place" : "");
    }
  }
}

TEST_P(StagingTest, TheRootsElementsComeToTheOthers) {
  Call tensor = call(Operation::kBroadcast, 1);
  tensor.count = 6 * size_ + 1;
  std::vector<Values> all(size_, Values(tensor.count));
  all[tensor.root] = input(tensor.root, tensor.count);
  EXPECT_EQ(StagedRanks(tensor, inputs(0), all).run(), std::vector<Values>(size_, all[tensor.root]));

  Call blocks_of = call(Operation::kScatter, 2);
  blocks_of.counts = counts();
  const Blocks blocks(blocks_of.counts);
  std::vector<Values> in(size_), out, want;
  in[blocks_of.root] = input(3, blocks.total());
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    out.emplace_back(blocks.count(rank));
    const auto first = in[blocks_of.root].begin() + static_cast<std::ptrdiff_t>(blocks.at(rank));
    want.emplace_back(first, first + static_cast<std::ptrdiff_t>(blocks.count(rank)));
  }
  EXPECT_EQ(StagedRanks(blocks_of, in, out).run(), want);
}

TEST_P(StagingTest, EachRanksBlocksComeToTheirRanks) {
  const auto count = [](std::uint32_t from, std::uint32_t to) { return (from * 7 + to * 3) % 11; };
  std::vector<Call> calls;
  std::vector<Values> in(size_), out, want(size_);
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    Call& each = calls.emplace_back(call(Operation::kAllToAll, 2));
    each.rank = rank;
    for (std::uint32_t other = 0; other < size_; ++other) {
      each.counts.push_back(count(rank, other));
      each.in_counts.push_back(count(other, rank));
      for (std::uint64_t i = 0; i < count(rank, other); ++i) in[rank].push_back(value(rank, 100 * other + i));
      for (std::uint64_t i = 0; i < count(other, rank); ++i) want[rank].push_back(value(other, 100 * rank + i));
    }
    out.emplace_back(want[rank].size());
  }
  const StagedRanks all(calls, in, out);
  EXPECT_EQ(all.told().first_difference(), std::nullopt);
  EXPECT_EQ(StagedRanks(calls, in, out).run(), want);
  ++calls[1].in_counts[0];
  EXPECT_EQ(StagedRanks(calls, in, out).told().first_difference(), (std::pair<std::uint32_t, std::uint32_t>{0, 1}));
}

TEST(Staging, RanksOfAnExchangeChooseAlikeWhateverTheirCounts) {
  for (const std::uint32_t size : {2U, 5U, 64U}) {
    Call call{.operation = Operation::kAllToAll, .size = size, .element_bytes = 4, .may_use_boards = true};
    for (const std::uint64_t count : {0U, 1U, 100'000'000U}) {
      call.counts.assign(size, count);
      call.in_counts.assign(size, 3);
      EXPECT_EQ(cheapest(call, {}), Algorithm::kStaged);
      EXPECT_EQ(choices(call, {})[0].algorithm, Algorithm::kStaged);
      EXPECT_EQ(unmapped_choices(call, {})[0].algorithm, Algorithm::kDirect);
      EXPECT_EQ(cheapest(call, {.board_ns = 100'000}), Algorithm::kDirect);
      EXPECT_EQ(choices(call, {.board_ns = 100'000})[0].algorithm, Algorithm::kDirect);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, StagingTest, testing::Values(2, 3, 4, 5, 8, 13, 64));

TEST(Staging, FitsWhatRanksOfOneHostCanDo) {
  Call call{.operation = Operation::kAllReduce, .size = 4, .count = 1, .element_bytes = 8, .may_use_boards = true};
  EXPECT_TRUE(fits_staging(call));
  call.piece_bytes = 4 * 8;
  EXPECT_TRUE(fits_staging(call));
  --call.piece_bytes;
  EXPECT_FALSE(fits_staging(call)) << "a share would have no element";
  call.piece_bytes = kBoardBytesMax;
  call.count = 0;
  EXPECT_FALSE(fits_staging(call)) << "nobody waits for nothing";
  call.count = 1;
  call.reproducible = true;
  EXPECT_FALSE(fits_staging(call)) << "that has one tree";
  call.reproducible = false;
  call.commutes = false;
  EXPECT_FALSE(fits_staging(call));
  call.commutes = true;
  call.hosts = {0, 0, 1, 1};
  EXPECT_FALSE(fits_staging(call));
  call.hosts = {};
  call.may_use_boards = false;
  EXPECT_FALSE(fits_staging(call));
  call.may_use_boards = true;
  call.size = kBoardRanksMax;
  EXPECT_TRUE(fits_staging(call));
  ++call.size;
  EXPECT_FALSE(fits_staging(call));
  for (const Operation one_way : {Operation::kGather, Operation::kScatter}) {
    Call blocks{
        .operation = one_way, .size = 2, .counts = {1, kOneWayPieces * kBoardBytesMax - 1}, .may_use_boards = true};
    EXPECT_FALSE(fits_staging(blocks));
    ++blocks.counts[0];
    EXPECT_TRUE(fits_staging(blocks));
  }
  for (const Operation other : {Operation::kBarrier, Operation::kScan, Operation::kExclusiveScan}) {
    EXPECT_FALSE(fits_staging({.operation = other, .size = 2, .count = 1, .may_use_boards = true}));
  }
}

TEST(Staging, AnExchangeHasTurnsForFewerThanTheMostPieces) {
  Call call{.operation = Operation::kAllToAll, .size = 2, .counts = {0, 0}, .in_counts = {0, 0}, .element_bytes = 8};
  EXPECT_EQ(turns_of_staging(call), 1 + kPiecesMax) << "whatever the counts";
  constexpr std::uint64_t kShare = kBoardBytesMax / 8 / 2;
  AllCounts counts(2);
  counts.letters()[1] = kPiecesMax * kShare - 1;
  EXPECT_TRUE(has_turns_for(call, counts));
  ++counts.letters()[1];
  EXPECT_FALSE(has_turns_for(call, counts));
}

TEST(Staging, APieceIsWhatABoardHolds) {
  Call call{.operation = Operation::kBroadcast, .size = 2, .count = kBoardBytesMax / 8, .element_bytes = 8};
  EXPECT_EQ(Staging(call).turns(), 1U);
  ++call.count;
  EXPECT_EQ(Staging(call).turns(), 2U);
  call.operation = Operation::kAllReduce;
  EXPECT_EQ(Staging(call).turns(), 4U) << "a turn for the sums of each";
  call.operation = Operation::kReduceScatter;
  call.counts = {1, kBoardBytesMax / 16};
  EXPECT_EQ(Staging(call).turns(), 1U) << "the boards hold two shares each";
  ++call.counts[1];
  EXPECT_EQ(Staging(call).turns(), 2U);
}

}  // namespace
}  // namespace hawser::schedule
