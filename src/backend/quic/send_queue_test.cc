#include "backend/quic/send_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::backend::quic {
namespace {

class SendQueueTest : public testing::Test {
 protected:
  void append(std::size_t bytes) { queue_.append(std::vector<std::byte>(bytes, std::byte{1})); }

  ChunkPool pool_;
  SendQueue queue_{pool_};
};

TEST_F(SendQueueTest, NothingIsUnsentAtFirst) {
  EXPECT_FALSE(queue_.has_unsent());
  EXPECT_TRUE(queue_.is_done());
  EXPECT_EQ(queue_.unsent(SIZE_MAX).count, 0u);
}

TEST_F(SendQueueTest, AnEndOfNoBytesIsUnsentToo) {
  queue_.finish();
  EXPECT_TRUE(queue_.has_unsent()) << "the end is";
  EXPECT_FALSE(queue_.is_done());
  EXPECT_TRUE(queue_.ends_with(queue_.unsent(SIZE_MAX)));
  queue_.note_sent(0, true);
  EXPECT_FALSE(queue_.has_unsent());
  EXPECT_TRUE(queue_.is_done());
}

TEST_F(SendQueueTest, TheEndGoesWithTheLastByteAndNotBefore) {
  append(ByteQueue::kChunk + 10);
  queue_.finish();
  EXPECT_FALSE(queue_.ends_with(queue_.unsent(1)));
  EXPECT_TRUE(queue_.ends_with(queue_.unsent(2)));
  queue_.note_sent(ByteQueue::kChunk + 9, true);
  EXPECT_TRUE(queue_.has_unsent()) << "QUIC took one byte less, and so not the end";
  queue_.note_sent(1, true);
  EXPECT_FALSE(queue_.has_unsent());
  EXPECT_FALSE(queue_.is_done()) << "nothing is acknowledged";
  queue_.note_acknowledged(ByteQueue::kChunk + 10);
  EXPECT_TRUE(queue_.is_done());
}

TEST_F(SendQueueTest, OneDatagramTakesBytesOfSeveralChunks) {
  append(ByteQueue::kChunk);
  append(100);
  queue_.note_sent(ByteQueue::kChunk - 10, false);
  const SendParts parts = queue_.unsent(SIZE_MAX);
  ASSERT_EQ(parts.count, 2u);
  EXPECT_EQ(parts.parts[0].len, 10u);
  EXPECT_EQ(parts.parts[1].len, 100u);
  EXPECT_EQ(parts.bytes, 110u);
  EXPECT_EQ(queue_.unsent(1).bytes, 10u);
}

TEST_F(SendQueueTest, HasAtMostTheChunksOfTheLargestDatagram) {
  append(10 * ByteQueue::kChunk);
  const SendParts parts = queue_.unsent(SIZE_MAX);
  EXPECT_EQ(parts.count, parts.parts.size());
  EXPECT_GE(parts.bytes, kDatagramMost);
}

TEST_F(SendQueueTest, AcknowledgedBytesAreForgottenAndTheOthersStayWhereTheyAre) {
  append(3 * ByteQueue::kChunk);
  queue_.note_sent(2 * ByteQueue::kChunk, false);
  const auto* const next = queue_.unsent(1).parts[0].base;
  queue_.note_acknowledged(ByteQueue::kChunk);
  EXPECT_EQ(queue_.size(), 2 * ByteQueue::kChunk);
  EXPECT_EQ(queue_.sent(), ByteQueue::kChunk);
  EXPECT_EQ(queue_.unsent(), ByteQueue::kChunk);
  EXPECT_EQ(queue_.unsent(1).parts[0].base, next);
  EXPECT_EQ(pool_.kept(), 1u);
}

// ngtcp2 may send bytes of a stream again that was reset.
TEST_F(SendQueueTest, AnAbortedOneSendsNothingAndKeepsWhatItSent) {
  append(500);
  queue_.note_sent(200, false);
  queue_.abort();
  EXPECT_TRUE(queue_.is_aborted());
  EXPECT_FALSE(queue_.has_unsent());
  EXPECT_EQ(queue_.size(), 500u);
  queue_.note_acknowledged(200);
  EXPECT_EQ(queue_.size(), 300u);
}

}  // namespace
}  // namespace hawser::backend::quic
