#include "compat/spare_rooms.h"

#include <gtest/gtest.h>

namespace hawser::compat {
namespace {

std::vector<plan::RowBlock> room_of(std::size_t blocks) {
  std::vector<plan::RowBlock> room;
  room.reserve(blocks);
  return room;
}

TEST(SpareRooms, GiveBackWhatIsKeptOnce) {
  SpareRooms rooms;
  EXPECT_EQ(rooms.take().capacity(), 0u);
  rooms.keep(room_of(100));
  EXPECT_GE(rooms.take().capacity(), 100u);
  EXPECT_EQ(rooms.take().capacity(), 0u);
}

TEST(SpareRooms, KeepFewAndNoneThatIsTooLarge) {
  SpareRooms rooms;
  rooms.keep(room_of(SpareRooms::kBlocksMax + 1));
  rooms.keep({});
  EXPECT_EQ(rooms.take().capacity(), 0u);
  for (std::size_t i = 0; i < SpareRooms::kRoomsMax + 2; ++i) rooms.keep(room_of(10));
  std::size_t kept = 0;
  while (rooms.take().capacity() > 0) ++kept;
  EXPECT_EQ(kept, SpareRooms::kRoomsMax);
}

}  // namespace
}  // namespace hawser::compat
