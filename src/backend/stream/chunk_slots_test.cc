#include "backend/stream/chunk_slots.h"

#include <gtest/gtest.h>

#include "backend/stream/file_desk.h"

namespace hawser::backend::stream {
namespace {

class ChunkSlotsTest : public testing::Test {
 protected:
  Chunk chunk(Operation op, std::uint64_t bytes) {
    Chunk made;
    made.op = op;
    made.bytes = bytes;
    made.target = &binding_;
    return made;
  }
  ChunkSlot* add(const Chunk& chunk) {
    ChunkSlot* slot = slots_.add(chunk);
    if (slot != nullptr) slot->state = ChunkSlot::State::kQueued;
    return slot;
  }
  /// Adds chunks of `op` until they lack room; how many there were.
  std::uint32_t fill(Operation op, std::uint64_t bytes, bool large) {
    std::uint32_t count = 0;
    while (slots_.lacks_room(chunk(op, bytes), large).empty() && add(chunk(op, bytes)) != nullptr) ++count;
    return count;
  }

  RemoteBinding binding_;
  ChunkSlots slots_;
};

TEST_F(ChunkSlotsTest, BulkLeavesChunksToSmallOnes) {
  EXPECT_EQ(fill(Operation::kWrite, 1, true), kChunksMax - kSmallChunks);
  EXPECT_NE(slots_.lacks_room(chunk(Operation::kWrite, 1), true), "");
  EXPECT_EQ(fill(Operation::kWrite, 1, false), kSmallChunks);
  EXPECT_EQ(slots_.add(chunk(Operation::kWrite, 1)), nullptr);
  EXPECT_EQ(slots_.count(), kChunksMax);
}

TEST_F(ChunkSlotsTest, BulkReadsLeaveReadsToSmallOnes) {
  EXPECT_EQ(fill(Operation::kRead, 1, true), kReadsMax - kSmallReads);
  EXPECT_EQ(fill(Operation::kRead, 1, false), kSmallReads);
  EXPECT_NE(slots_.lacks_room(chunk(Operation::kRead, 1), false), "");
  EXPECT_EQ(slots_.lacks_room(chunk(Operation::kWrite, 1), true), "") << "writes count for themselves";
}

TEST_F(ChunkSlotsTest, BytesOfBulkAreBoundedAndOneChunkMayPass) {
  EXPECT_EQ(slots_.lacks_room(chunk(Operation::kWrite, kBytesMax + 1), true), "") << "alone";
  add(chunk(Operation::kWrite, kBytesMax - 10));
  EXPECT_EQ(slots_.lacks_room(chunk(Operation::kWrite, 10), true), "");
  EXPECT_NE(slots_.lacks_room(chunk(Operation::kWrite, 11), true), "");
  EXPECT_EQ(slots_.lacks_room(chunk(Operation::kWrite, 11), false), "") << "a small one is taken at once";
}

TEST_F(ChunkSlotsTest, BytesToFilesAreBounded) {
  binding_.in_file = true;
  add(chunk(Operation::kWrite, kFileBytesMax - 10));
  EXPECT_EQ(slots_.lacks_room(chunk(Operation::kRead, 10), false), "");
  EXPECT_NE(slots_.lacks_room(chunk(Operation::kRead, 11), false), "");
  slots_.remove(slots_.at(0));
  EXPECT_EQ(slots_.lacks_room(chunk(Operation::kRead, kFileBytesMax + 1), false), "");
}

TEST_F(ChunkSlotsTest, ATagOfAChunkThatEndedNamesNothing) {
  ChunkSlot* slot = add(chunk(Operation::kRead, 5));
  const std::uint32_t tag = slots_.tag_of(*slot);
  EXPECT_EQ(slots_.find(tag), slot);
  EXPECT_EQ(slots_.find(tag + 1), nullptr) << "no such slot";
  slots_.remove(*slot);
  EXPECT_EQ(slots_.find(tag), nullptr);
  EXPECT_EQ(slots_.bytes(), 0u);
  ChunkSlot* next = add(chunk(Operation::kRead, 5));
  EXPECT_EQ(slots_.number_of(*next), 0u) << "its slot is used again";
  EXPECT_NE(slots_.tag_of(*next), tag);
  EXPECT_LE(slots_.tag_of(*next), wire::kTagMax);
}

TEST_F(ChunkSlotsTest, GenerationsComeRoundWithinATag) {
  const std::uint32_t first = slots_.tag_of(*add(chunk(Operation::kRead, 1)));
  std::uint32_t rounds = 0;
  std::uint32_t tag = 0;
  do {
    slots_.remove(slots_.at(0));
    tag = slots_.tag_of(*add(chunk(Operation::kRead, 1)));
    ASSERT_LE(tag, wire::kTagMax);
    ++rounds;
  } while (tag != first);
  EXPECT_EQ(rounds, 1u << 14);
}

}  // namespace
}  // namespace hawser::backend::stream
