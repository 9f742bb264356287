#include "backend/quic/send_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/rng.h"

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

TEST_F(SendQueueTest, PiecesThatAreLentFillTheLargestDatagramToo) {
  const std::vector<std::byte> piece(SendQueue::kLendMin);
  for (int i = 0; i < 30; ++i) append(60), queue_.lend(piece);
  EXPECT_GE(queue_.unsent(SIZE_MAX).bytes, kDatagramMost);
}

TEST_F(SendQueueTest, HasAtMostTheChunksOfTheLargestDatagram) {
  append(10 * ByteQueue::kChunk);
  const SendParts parts = queue_.unsent(SIZE_MAX);
  EXPECT_GE(parts.bytes, kDatagramMost);
  EXPECT_LT(parts.bytes, kDatagramMost + ByteQueue::kChunk);
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

TEST_F(SendQueueTest, LentBytesAreSentFromWhereTheyLieAndReleasedOnceAcknowledged) {
  const std::vector<std::byte> lent(1000, std::byte{7});
  append(10);
  EXPECT_EQ(queue_.released(), 10u) << "they are copied";
  queue_.lend(lent);
  append(20);
  EXPECT_EQ(queue_.size(), 1030u);
  EXPECT_EQ(queue_.released(), 10u) << "and those behind lent ones are not released before these";
  const SendParts parts = queue_.unsent(SIZE_MAX);
  ASSERT_EQ(parts.count, 3u);
  EXPECT_EQ(static_cast<const void*>(parts.parts[1].base), lent.data());
  queue_.note_sent(500, false);
  EXPECT_EQ(static_cast<const void*>(queue_.unsent(1).parts[0].base), lent.data() + 490);
  queue_.note_acknowledged(300);
  EXPECT_EQ(queue_.released(), 300u);
  EXPECT_TRUE(queue_.refers_to_user());
  queue_.note_sent(530, false);
  EXPECT_EQ(queue_.unsent(SIZE_MAX).count, 0u);
  queue_.note_acknowledged(710);
  EXPECT_FALSE(queue_.refers_to_user());
  EXPECT_EQ(queue_.released(), 1030u);
  EXPECT_EQ(queue_.given(), 1030u);
}

// Pieces of both kinds and any size, sent and acknowledged in any steps, against the bytes in one row.
TEST_F(SendQueueTest, BytesComeOutInTheirOrder) {
  base::Rng rng(5);
  std::vector<std::byte> all(300'000);
  for (std::byte& byte : all) byte = static_cast<std::byte>(rng.u64());
  std::size_t given = 0, sent = 0, acknowledged = 0;
  while (acknowledged < all.size()) {
    const std::size_t more = std::min<std::size_t>(rng.below(9000), all.size() - given);
    const auto next = std::span<const std::byte>(all).subspan(given, more);
    if (rng.chance(0.5)) {
      queue_.append(next);
    } else {
      queue_.lend(next);
    }
    given += more;
    std::size_t at = sent;
    const SendParts parts = queue_.unsent(1 + rng.below(5));
    for (std::size_t i = 0; i < parts.count; ++i) {
      ASSERT_EQ(std::memcmp(parts.parts[i].base, all.data() + at, parts.parts[i].len), 0) << at;
      at += parts.parts[i].len;
    }
    ASSERT_EQ(at - sent, parts.bytes);
    const std::size_t step = rng.below(parts.bytes + 1);
    queue_.note_sent(step, false);
    sent += step;
    const std::size_t heard = rng.below(sent - acknowledged + 1);
    queue_.note_acknowledged(heard);
    acknowledged += heard;
    ASSERT_EQ(queue_.size(), given - acknowledged);
    ASSERT_EQ(queue_.unsent(), given - sent);
    ASSERT_GE(queue_.released(), acknowledged);
    ASSERT_LE(queue_.released(), given);
  }
  EXPECT_EQ(queue_.released(), all.size());
}

}  // namespace
}  // namespace hawser::backend::quic
