#include "runtime/board_turn.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "runtime/test_boards.h"

namespace hawser::runtime {
namespace {

class BoardTurnTest : public testing::Test {
 protected:
  using Sight = BoardTurn::Sight;

  void write(std::uint32_t rank, std::uint64_t turn, std::uint64_t digest = 5) {
    const std::array<std::byte, 3> bytes = {std::byte{1}, std::byte{2}, std::byte(rank)};
    boards_[rank].write(turn, {.number = 9, .digest = digest, .bytes = bytes});
  }
  static std::uint64_t three(std::uint32_t) { return 3; }

  TestBoards boards_{2};
};

TEST_F(BoardTurnTest, SeesWhatAllHaveWritten) {
  BoardTurn turn(boards_[0], 6, 9, 5);
  EXPECT_EQ(turn.turn(), 6U);
  EXPECT_FALSE(turn.has_news());
  EXPECT_EQ(turn.look(three), Sight::kWaits);
  write(0, 6);
  EXPECT_TRUE(turn.has_news());
  EXPECT_EQ(turn.look(three), Sight::kWaits);
  EXPECT_FALSE(turn.awaits(0));
  EXPECT_TRUE(turn.awaits(1));
  write(1, 6);
  EXPECT_TRUE(turn.has_news());
  EXPECT_FALSE(turn.awaits(1)) << "it has written, though this rank has not looked";
  EXPECT_EQ(turn.look(three), Sight::kAll);
  EXPECT_EQ(turn.look(three), Sight::kAll);
  ASSERT_EQ(turn.written().size(), 2U);
  EXPECT_EQ(turn.written()[1].back(), std::byte{1});
  EXPECT_TRUE(turn.is_still_there());
}

TEST_F(BoardTurnTest, WhatWasReadCountsForNothingOnceABoardHasGone) {
  BoardTurn turn(boards_[0], 0, 9, 5);
  write(0, 0);
  write(1, 0);
  EXPECT_EQ(turn.look(three), Sight::kAll);
  EXPECT_FALSE(boards_[0].is_gone(1));
  boards_.gone = 1;
  EXPECT_FALSE(turn.is_still_there());
  EXPECT_EQ(turn.culprit(), 1U);
  EXPECT_TRUE(turn.awaits(1));
  EXPECT_TRUE(boards_[0].is_gone(1));
  EXPECT_EQ(turn.look(three), Sight::kWaits);
}

TEST_F(BoardTurnTest, UsesNothingOfAnotherCall) {
  write(0, 0);
  write(1, 0, 6);
  BoardTurn turn(boards_[0], 0, 9, 5);
  EXPECT_EQ(turn.look(three), Sight::kDiffers);
  EXPECT_EQ(turn.culprit(), 1U);
  BoardTurn longer(boards_[1], 0, 9, 5);
  EXPECT_EQ(longer.look([](std::uint32_t) { return std::uint64_t{4}; }), Sight::kBad);
  EXPECT_EQ(longer.culprit(), 0U);
}

}  // namespace
}  // namespace hawser::runtime
