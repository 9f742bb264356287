#include "backend/stream/cancelled_writes.h"

#include <gtest/gtest.h>

#include "backend/stream/test_slots.h"

namespace hawser::backend::stream {
namespace {

class CancelledWritesTest : public testing::Test, protected TestSlots {
 protected:
  static constexpr std::uint64_t kBytes = 8000;

  /// A write on stream 1 of which some went, cancelled.
  ChunkSlot& cancel_begun(bool release = true) {
    ChunkSlot& slot = framed_write(kBytes, 1);
    static_cast<void>(bytes_of(outlets[1], 1000, release));
    slot.cancelled = true;
    writes_.add(slot, outlets[1]);
    return slot;
  }
  /// The VOID frame that asks for it.
  wire::VoidWrite ask() {
    writes_.stage_questions(outlets[0]);
    const auto frames = frames_of(outlets[0]);
    wire::VoidWrite write;
    EXPECT_EQ(frames.size(), 1u);
    if (frames.size() != 1) return write;
    EXPECT_EQ(frames[0].head.type, wire::FrameType::kVoid);
    base::ByteReader in(frames[0].meta);
    EXPECT_TRUE(wire::decode_void(in, &write));
    return write;
  }

  CancelledWrites writes_{slots, reports};
};

TEST_F(CancelledWritesTest, AFrameThatHasBegunEndsAsFillerAndThePeerIsAsked) {
  ChunkSlot& slot = cancel_begun();
  EXPECT_EQ(writes_.count(), 1u);
  ASSERT_TRUE(writes_.has_questions());
  const wire::VoidWrite question = ask();
  EXPECT_EQ(question.tag, slots.tag_of(slot));
  EXPECT_EQ(question.stream, 1u);
  EXPECT_EQ(question.frame, 0u);
  std::fill(memory.begin(), memory.end(), std::byte{0xcd});
  const auto rest = bytes_of(outlets[1]);
  EXPECT_EQ(std::ranges::count(rest, std::byte{0xcd}), 0) << "nothing of the memory goes any more";
}

TEST_F(CancelledWritesTest, TheAnswerEndsIt) {
  ChunkSlot& slot = cancel_begun();
  EXPECT_FALSE(writes_.on_answer(slot, wire::Outcome::kVoidedClean, outlets[1])) << "nobody asked yet";
  static_cast<void>(ask());
  EXPECT_TRUE(writes_.on_answer(slot, wire::Outcome::kVoidedClean, outlets[1]));
  EXPECT_EQ(writes_.count(), 0u);
  const auto heard = told();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].status.code(), Code::kCancelled);
  EXPECT_EQ(heard[0].status.buffer(), BufferState::kUntouched);
  EXPECT_FALSE(writes_.on_answer(slot, wire::Outcome::kVoidedClean, outlets[1])) << "answered twice";
}

TEST_F(CancelledWritesTest, AnAnswerWaitsForTheStreamThatRefersToItsMemory) {
  ChunkSlot& slot = cancel_begun(false);
  static_cast<void>(ask());
  EXPECT_TRUE(writes_.on_answer(slot, wire::Outcome::kVoidedMidway, outlets[1]));
  EXPECT_TRUE(told().empty());
  EXPECT_FALSE(CancelledWrites::is_settled(slot, outlets[1]));
  outlets[1].released(1000);
  ASSERT_TRUE(CancelledWrites::is_settled(slot, outlets[1]));
  writes_.end(slot);
  EXPECT_EQ(told().size(), 1u);
  EXPECT_EQ(writes_.count(), 0u);
}

TEST_F(CancelledWritesTest, WithoutAnAnswerItEndsAsUnknownInTheSecondPeriod) {
  ChunkSlot& slot = cancel_begun();
  EXPECT_TRUE(writes_.next_period(outlets));
  EXPECT_TRUE(told().empty()) << "it was cancelled within the first";
  EXPECT_TRUE(writes_.next_period(outlets));
  const auto heard = told();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(heard[0].unsettled);
  EXPECT_EQ(heard[0].status.buffer(), BufferState::kUnknown);
  EXPECT_EQ(binding.strays, 1u) << "nothing is written to that region until it has landed";
  EXPECT_NE(ask().tag, 0xffffffffu) << "it is asked for all the same";
  EXPECT_TRUE(writes_.on_answer(slot, wire::Outcome::kVoidedClean, outlets[1]));
  EXPECT_EQ(binding.strays, 0u);
}

TEST_F(CancelledWritesTest, AStreamThatKeepsMemoryForTooLongIsTold) {
  cancel_begun(false);
  for (std::uint32_t period = 0; period < kHeldPeriods; ++period) EXPECT_TRUE(writes_.next_period(outlets)) << period;
  EXPECT_FALSE(writes_.next_period(outlets));
  EXPECT_TRUE(told().empty());
}

TEST_F(CancelledWritesTest, AWriteThatMayHaveBeenCountedGoesOnFromACopy) {
  ChunkSlot& slot = framed_write(kBytes, 1);
  slot.again = true;
  const auto head = bytes_of(outlets[1], 1000);
  slot.cancelled = true;
  writes_.add(slot, outlets[1]);
  EXPECT_FALSE(writes_.has_questions());
  std::fill(memory.begin(), memory.end(), std::byte{0xcd});
  auto all = head;
  const auto rest = bytes_of(outlets[1]);
  all.insert(all.end(), rest.begin(), rest.end());
  const auto frames = cut(all);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(frames[0].payload, std::byte{0xab})), kBytes);
  EXPECT_EQ(frames[0].trailer, wire::Outcome::kOk);
}

TEST_F(CancelledWritesTest, OnTheFirstStreamNobodyIsAsked) {
  ChunkSlot& slot = framed_write(kBytes, 0);
  static_cast<void>(bytes_of(outlets[0], 1000));
  slot.cancelled = true;
  writes_.add(slot, outlets[0]);
  EXPECT_FALSE(writes_.has_questions()) << "the peer would hear it behind the write itself";
  writes_.note_told(slot);
  EXPECT_EQ(writes_.count(), 0u);
}

TEST_F(CancelledWritesTest, NobodyAsksForWhatHasEndedMeanwhile) {
  slots.remove(cancel_begun());
  writes_.stage_questions(outlets[0]);
  EXPECT_FALSE(outlets[0].has_unsent());
  cancel_begun();
  writes_.forget_questions();
  EXPECT_FALSE(writes_.has_questions());
}

}  // namespace
}  // namespace hawser::backend::stream
