#include "backend/stream/chunk_frames.h"

#include <gtest/gtest.h>

#include "backend/stream/test_slots.h"

namespace hawser::backend::stream {
namespace {

class ChunkFramesTest : public testing::Test, protected TestSlots {
 protected:
  bool is_good(std::size_t count, std::uint64_t size, std::uint64_t total) {
    list_.assign(count, Piece{memory.data(), 0, size});
    Chunk chunk;
    chunk.target = &binding;
    chunk.pieces = list_;
    chunk.bytes = total;
    return is_well_formed(chunk);
  }

  std::vector<Piece> list_;
};

TEST_F(ChunkFramesTest, PiecesAndBytesAreBounded) {
  EXPECT_TRUE(is_good(wire::kPiecesMax, 2, 2 * wire::kPiecesMax));
  EXPECT_FALSE(is_good(wire::kPiecesMax + 1, 2, 2 * (wire::kPiecesMax + 1)));
  EXPECT_FALSE(is_good(0, 0, 0));
  EXPECT_TRUE(is_good(1, wire::kPayloadMax, wire::kPayloadMax));
  EXPECT_FALSE(is_good(1, wire::kPayloadMax + 1, wire::kPayloadMax + 1));
  EXPECT_FALSE(is_good(2, 5, 11)) << "they do not add up";
  EXPECT_FALSE(is_good(2, UINT64_MAX / 2 + 1, 0)) << "the sum would overflow";
}

TEST_F(ChunkFramesTest, APayloadUpToTheLimitIsCopied) {
  EXPECT_TRUE(framed_write(kInlineMax, 0).copied);
  EXPECT_FALSE(framed_write(kInlineMax + 1, 0).copied);
  std::fill(memory.begin(), memory.end(), std::byte{0xcd});
  const auto frames = frames_of(outlets[0]);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].payload[0], std::byte{0xab});
  EXPECT_EQ(frames[1].payload[0], std::byte{0xcd});
  EXPECT_EQ(frames[0].head.flags & wire::kFlagTrailer, 0);
  EXPECT_NE(frames[1].head.flags & wire::kFlagTrailer, 0);
}

TEST_F(ChunkFramesTest, AnInlineWriteEndsBeforeItsPadding) {
  const ChunkSlot& slot = framed_write(5, 0);
  EXPECT_EQ(slot.end, outlets[0].end() - (wire::padded(5) - 5));
}

TEST_F(ChunkFramesTest, TheBindingIsAnnouncedOnEachStreamOnce) {
  binding.announced = 0;
  framed_write(10, 0);
  framed_write(10, 0);
  framed_write(10, 1);
  EXPECT_EQ(frames_of(outlets[0]).size(), 3u);
  EXPECT_EQ(frames_of(outlets[1]).size(), 2u);
}

TEST_F(ChunkFramesTest, AReadNamesItsBytesAndPieces) {
  const ChunkSlot& slot = framed_read(900);
  const auto frames = frames_of(outlets[0]);
  ASSERT_EQ(frames.size(), 1u);
  base::ByteReader in(frames[0].meta);
  wire::ChunkHead head;
  ASSERT_TRUE(wire::decode_chunk(in, &head));
  EXPECT_EQ(head.tag, slots.tag_of(slot));
  EXPECT_EQ(head.transfer, 77u);
  EXPECT_EQ(in.u32(), 900u);
}

TEST_F(ChunkFramesTest, WhatWasNotSentIsTakenBack) {
  std::vector<std::uint32_t> tags;  // Slots move when others come.
  tags.push_back(slots.tag_of(framed_write(100, 0)));
  tags.push_back(slots.tag_of(framed_write(9000, 0)));
  tags.push_back(slots.tag_of(framed_read(50)));
  for (const std::uint32_t tag : tags) EXPECT_TRUE(withdraw_frame(*slots.find(tag), outlets[0]));
  for (const TestFrame& frame : frames_of(outlets[0])) EXPECT_EQ(frame.head.type, wire::FrameType::kSkip);
}

TEST_F(ChunkFramesTest, WhatHasBegunIsNot) {
  ChunkSlot& slot = framed_write(9000, 0);
  static_cast<void>(bytes_of(outlets[0], 1));
  EXPECT_FALSE(withdraw_frame(slot, outlets[0]));
}

}  // namespace
}  // namespace hawser::backend::stream
