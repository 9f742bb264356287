#include "runtime/world_boards.h"

#include <gtest/gtest.h>

#include "runtime/test_seat.h"

namespace hawser::runtime {
namespace {

using WorldBoardsTest = TestSeat;

TEST_F(WorldBoardsTest, OfASparseWorldThereAreNone) {
  WorldBoards boards;
  boards.open({.world = kWorld, .roster = &roster_, .seat = seat_.get(), .is_sparse = true}, {});
  EXPECT_EQ(boards.room(), nullptr);
  boards.know_hosts({});
  boards.close();
}

TEST_F(WorldBoardsTest, ARankWithoutMatesTakesNoMemory) {
  WorldBoards boards;
  boards.open({.world = kWorld, .roster = &roster_, .seat = seat_.get()}, {});
  ASSERT_NE(boards.room(), nullptr);
  EXPECT_EQ(boards.room_with_memory(), boards.room());
  boards.furnish();  // There is nothing to give.
  EXPECT_FALSE(boards.room()->is_open());
  boards.close();
}

}  // namespace
}  // namespace hawser::runtime
