#include "runtime/board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "runtime/test_boards.h"

namespace hawser::runtime {
namespace {

/// The boards of all ranks, in one memory.
class BoardTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kWorld = 77;

  void open(std::uint32_t size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) memories_.push_back(std::make_unique<BoardMemory>());
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      boards_.push_back(std::make_unique<Board>(
          kWorld, rank, size, memories_[rank]->bytes,
          [this](std::uint32_t other) { return other == gone_ ? nullptr : memories_[other]->bytes.data(); }));
    }
  }
  static void write(Board& board, std::uint64_t turn) {
    board.write(turn, {.number = 10 + turn, .digest = 3, .bytes = base::as_bytes("abc")});
  }
  Board::Sight look(std::uint32_t by, std::uint32_t rank, std::uint64_t turn) {
    return boards_[by]->look(rank, turn, &entry_);
  }

  std::vector<std::unique_ptr<BoardMemory>> memories_;
  std::vector<std::unique_ptr<Board>> boards_;
  std::uint32_t gone_ = 99;
  Board::Entry entry_;
};

TEST_F(BoardTest, WhatARankWroteIsThereForAll) {
  open(3);
  EXPECT_EQ(look(1, 0, 0), Board::Sight::kNotYet);
  write(*boards_[0], 0);
  for (const std::uint32_t by : {0U, 1U, 2U}) {
    ASSERT_EQ(look(by, 0, 0), Board::Sight::kThere);
    EXPECT_EQ(entry_.number, 10U);
    EXPECT_EQ(entry_.digest, 3U);
    EXPECT_EQ(base::as_text(entry_.bytes), "abc");
    EXPECT_TRUE(boards_[by]->is_still_there(0, 0));
    EXPECT_EQ(look(by, 0, 1), Board::Sight::kNotYet);
  }
}

TEST_F(BoardTest, ASlotIsTakenAgainOnceAllHaveReadIt) {
  open(3);
  for (std::uint64_t turn = 0; turn < kBoardSlots; ++turn) {
    ASSERT_TRUE(boards_[0]->is_free(turn));
    write(*boards_[0], turn);
  }
  EXPECT_FALSE(boards_[0]->is_free(kBoardSlots));
  boards_[1]->finish(0);
  EXPECT_FALSE(boards_[0]->is_free(kBoardSlots));
  EXPECT_TRUE(boards_[0]->has_freed(1, kBoardSlots));
  EXPECT_FALSE(boards_[0]->has_freed(2, kBoardSlots));
  boards_[2]->finish(1);  // In any order: the first one still reads.
  EXPECT_FALSE(boards_[0]->is_free(kBoardSlots));
  boards_[2]->finish(0);
  EXPECT_FALSE(boards_[0]->is_free(kBoardSlots));  // It reads its own, too.
  boards_[0]->finish(0);
  EXPECT_TRUE(boards_[0]->is_free(kBoardSlots));
  EXPECT_FALSE(boards_[0]->is_free(kBoardSlots + 1));
  EXPECT_TRUE(boards_[0]->has_finished(2, 1));
  EXPECT_FALSE(boards_[0]->has_finished(1, 1));
}

TEST_F(BoardTest, ARankThatIsAheadHasWrittenWhatNobodyReads) {
  open(2);
  write(*boards_[0], 0);
  write(*boards_[0], kBoardSlots);
  EXPECT_EQ(look(1, 0, 0), Board::Sight::kBad);
  EXPECT_FALSE(boards_[1]->is_still_there(0, 0));
}

TEST_F(BoardTest, GarbageIsBadOrNotThereAndNothingElse) {
  open(2);
  write(*boards_[0], 0);
  const std::size_t slot = 2 * kBoardLine;
  const std::uint64_t huge = UINT64_MAX;
  std::memcpy(memories_[0]->bytes.data() + slot + 24, &huge, sizeof huge);  // Bytes.
  EXPECT_EQ(look(1, 0, 0), Board::Sight::kBad);
  std::ranges::fill(memories_[0]->bytes, std::byte{0xFF});
  EXPECT_EQ(look(1, 0, 0), Board::Sight::kGone);  // No board of this world.
  std::ranges::fill(memories_[0]->bytes, std::byte{0});
  EXPECT_EQ(look(1, 0, 0), Board::Sight::kGone);
  EXPECT_FALSE(boards_[1]->is_still_there(0, 0));
}

TEST_F(BoardTest, AnEndedPathIsGone) {
  open(2);
  write(*boards_[0], 0);
  ASSERT_EQ(look(1, 0, 0), Board::Sight::kThere);
  gone_ = 0;
  EXPECT_EQ(look(1, 0, 0), Board::Sight::kGone);
  EXPECT_FALSE(boards_[1]->is_still_there(0, 0));
  EXPECT_TRUE(boards_[1]->to_ring().empty());
  EXPECT_FALSE(boards_[1]->is_free(kBoardSlots));
}

TEST_F(BoardTest, WhereARankStandsIsWhatItToldLast) {
  open(2);
  for (const int core : {-1, 0, 7}) EXPECT_FALSE(boards_[1]->stood_on(0, core)) << "it has told nothing";
  boards_[0]->stand_on(0);
  EXPECT_TRUE(boards_[1]->stood_on(0, 0));
  boards_[0]->stand_on(7);
  boards_[0]->stand_on(-1);  // The system does not say.
  EXPECT_FALSE(boards_[1]->stood_on(0, 0));
  EXPECT_TRUE(boards_[1]->stood_on(0, 7));
  EXPECT_FALSE(boards_[1]->stood_on(0, -1));
  gone_ = 0;
  EXPECT_FALSE(boards_[1]->stood_on(0, 7));
  gone_ = 99;
  Board::wipe(memories_[0]->bytes);
  EXPECT_FALSE(boards_[1]->stood_on(0, 7)) << "the memory is another board's now";
}

TEST_F(BoardTest, EachAskIsRungForOnceByEachRank) {
  open(3);
  using Ranks = std::vector<std::uint32_t>;
  EXPECT_EQ(boards_[1]->to_ring(), Ranks());
  boards_[0]->ask();
  EXPECT_EQ(boards_[1]->to_ring(), Ranks{0});
  EXPECT_EQ(boards_[1]->to_ring(), Ranks());
  EXPECT_EQ(boards_[2]->to_ring(), Ranks{0});
  boards_[0]->ask();  // It was woken for less than it waits for.
  EXPECT_EQ(boards_[1]->to_ring(), Ranks{0});
  boards_[0]->stop_asking();
  EXPECT_EQ(boards_[2]->to_ring(), Ranks());
  boards_[0]->ask();
  EXPECT_EQ(boards_[1]->to_ring(), Ranks{0});
}

// A sleeper asks, then looks; a writer writes, then looks who asks. In every order of these four steps the sleeper sees
// what was written, or the writer rings.
TEST_F(BoardTest, NoOrderOfStepsLosesAWake) {
  std::array<int, 4> order = {0, 0, 1, 1};  // Whose step it is.
  do {
    memories_.clear();
    boards_.clear();
    open(2);
    std::array<int, 2> steps = {0, 0};
    bool sees = false, rings = false;
    for (const int whose : order) {
      const bool is_first = steps[static_cast<std::size_t>(whose)]++ == 0;
      if (whose == 0 && is_first) boards_[0]->ask();
      if (whose == 0 && !is_first) sees = look(0, 1, 0) == Board::Sight::kThere;
      if (whose == 1 && is_first) write(*boards_[1], 0);
      if (whose == 1 && !is_first) rings = !boards_[1]->to_ring().empty();
    }
    EXPECT_TRUE(sees || rings);
  } while (std::ranges::next_permutation(order).found);
}

}  // namespace
}  // namespace hawser::runtime
