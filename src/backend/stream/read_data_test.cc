#include "backend/stream/read_data.h"

#include <gtest/gtest.h>

#include "backend/stream/frame_writer.h"
#include "backend/stream/test_slots.h"

namespace hawser::backend::stream {
namespace {

class ReadDataTest : public testing::Test, protected TestSlots {
 protected:
  ChunkSlot& asked(std::uint64_t bytes) {
    ChunkSlot& slot = framed_read(bytes);
    static_cast<void>(bytes_of(outlets[0]));
    std::fill(memory.begin(), memory.end(), std::byte{0});
    return slot;
  }
  /// A DATA frame of `size` bytes at the target.
  static std::vector<std::byte> data(std::size_t size, bool last, char fill = 'd') {
    Outlet outlet;
    FrameWriter frame(outlet,
                      {.type = wire::FrameType::kData,
                       .flags = last ? wire::kFlagLast : std::uint8_t{0},
                       .meta_size = 4,
                       .payload_size = static_cast<std::uint32_t>(size)},
                      true);
    frame.meta().u32(0);
    std::fill_n(frame.inline_payload().data(), size, static_cast<std::byte>(fill));
    return bytes_of(outlet);
  }
  /// Its head comes on stream `index`.
  bool begin(ChunkSlot* slot, unsigned index, const std::vector<std::byte>& bytes) {
    frame_ = bytes;
    left_ = frame_;
    EXPECT_EQ(next_of(inlets[index], left_), Inlet::Next::kFrame);
    return ReadData::begin(slot, index, inlets[index], outlets);
  }
  ReadData::End end(ChunkSlot& slot, unsigned index) {
    if (inlets[index].in_payload()) {
      EXPECT_EQ(next_of(inlets[index], left_), Inlet::Next::kPayload);
    }
    return ReadData::end(slot, inlets[index]);
  }

  ReadData reads_;
  std::vector<std::byte> frame_;
  std::span<const std::byte> left_;
};

TEST_F(ReadDataTest, FramesLandBehindOneAnother) {
  ChunkSlot& slot = asked(3000);
  ASSERT_TRUE(begin(&slot, 1, data(2000, false, 'a')));
  EXPECT_EQ(end(slot, 1), ReadData::End::kGoesOn);
  ASSERT_TRUE(begin(&slot, 1, data(1000, true, 'b')));
  EXPECT_EQ(end(slot, 1), ReadData::End::kOver);
  EXPECT_EQ(memory[1999], std::byte{'a'});
  EXPECT_EQ(memory[2000], std::byte{'b'});
  EXPECT_EQ(memory[2999], std::byte{'b'});
  EXPECT_EQ(memory[3000], std::byte{0});
}

TEST_F(ReadDataTest, MoreThanWasAskedForIsSenseless) {
  EXPECT_TRUE(begin(&asked(100), 0, data(100, true)));
  EXPECT_EQ(end(slots.at(0), 0), ReadData::End::kOver);
  EXPECT_FALSE(begin(&asked(100), 1, data(101, true)));
}

TEST_F(ReadDataTest, TheLastFrameHasToCompleteIt) {
  ChunkSlot& slot = asked(100);
  ASSERT_TRUE(begin(&slot, 0, data(99, true)));
  EXPECT_EQ(end(slot, 0), ReadData::End::kSenseless);
  ChunkSlot& other = asked(100);
  ASSERT_TRUE(begin(&other, 1, data(100, false)));
  EXPECT_EQ(end(other, 1), ReadData::End::kSenseless) << "all is there, and it does not say so";
}

TEST_F(ReadDataTest, AnAnswerKeepsToOneStreamAndOneFrameAtATime) {
  ChunkSlot& slot = asked(3000);
  ASSERT_TRUE(begin(&slot, 1, data(1000, false)));
  EXPECT_FALSE(begin(&slot, 0, data(1000, false))) << "one frame is coming";
  slot.in_frame = false;
  inlets[0] = Inlet();
  EXPECT_FALSE(begin(&slot, 0, data(1000, false))) << "the other stream";
}

TEST_F(ReadDataTest, OnlyWhatWasAskedForHasAnAnswer) {
  EXPECT_FALSE(begin(nullptr, 0, data(10, true)));
  ChunkSlot& unsent = framed_read(10);
  EXPECT_FALSE(begin(&unsent, 1, data(10, true))) << "the request has not left";
  ChunkSlot& write = framed_write(10, 0);
  static_cast<void>(bytes_of(outlets[0]));
  inlets[0] = Inlet();
  EXPECT_FALSE(begin(&write, 0, data(10, true)));
}

TEST_F(ReadDataTest, AnEmptyFrameIsTheLast) {
  ChunkSlot& slot = asked(10);
  EXPECT_FALSE(begin(&slot, 0, data(0, false)));
}

TEST_F(ReadDataTest, DataOfACancelledReadLandsNowhere) {
  ChunkSlot& slot = asked(2000);
  ASSERT_TRUE(begin(&slot, 0, data(2000, true)));
  EXPECT_FALSE(ReadData::cancel(slot, inlets)) << "nothing is in place";
  slot.state = ChunkSlot::State::kEnded;
  EXPECT_EQ(end(slot, 0), ReadData::End::kOver);
  EXPECT_EQ(std::ranges::count(memory, std::byte{'d'}), 0);
}

TEST_F(ReadDataTest, CancellingTellsOfWhatIsInPlace) {
  ChunkSlot& slot = asked(2000);
  ASSERT_TRUE(begin(&slot, 0, data(1000, false)));
  EXPECT_EQ(end(slot, 0), ReadData::End::kGoesOn);
  EXPECT_TRUE(ReadData::cancel(slot, inlets));
}

TEST_F(ReadDataTest, SoManyCoveredReadsFitOneFrame) {
  ChunkSlot& slot = asked(10);
  for (std::size_t i = 0; i < wire::kLandedMax; ++i) reads_.note_landed(slot);
  reads_.stage_landed(outlets[0]);
  EXPECT_EQ(frames_of(outlets[0]).size(), 1u);
  for (std::size_t i = 0; i < wire::kLandedMax + 1; ++i) reads_.note_landed(slot);
  EXPECT_TRUE(reads_.has_landed());
  reads_.stage_landed(outlets[0]);
  const auto frames = frames_of(outlets[0]);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1].meta.size(), 12u);
  EXPECT_FALSE(reads_.has_landed());
}

}  // namespace
}  // namespace hawser::backend::stream
