#include "backend/stream/read_replies.h"

#include <gtest/gtest.h>

#include "backend/stream/test_serving.h"

namespace hawser::backend::stream {
namespace {

constexpr std::uint64_t kSmallMax = 4096;

class ReadRepliesTest : public testing::Test, protected TestServing {
 protected:
  explicit ReadRepliesTest(const PeerQuotas& quotas = {}) : TestServing(quotas) {}

  bool ask(std::uint32_t tag, std::uint64_t offset, std::uint32_t size) {
    const Piece piece{.local = nullptr, .remote = offset, .size = size};
    bool equal = true;
    std::string meta;
    base::ByteWriter out(&meta);
    static_cast<void>(wire::pieces_size(std::span(&piece, 1), &equal));
    wire::encode_chunk(out, {.transfer = 7, .index = 3, .tag = tag, .binding = 1});
    out.u32(size);
    wire::encode_pieces(out, std::span(&piece, 1), equal);
    return replies_.on_read(base::as_bytes(meta), outlets_);
  }
  void release(unsigned stream) {
    for (std::uint32_t owner = outlets_[stream].next_released(); owner != kNoOwner;
         owner = outlets_[stream].next_released()) {
      replies_.on_released(owner);
    }
  }

  std::array<Outlet, 2> outlets_;
  ReadReplies replies_{serving, kSmallMax};
};

TEST_F(ReadRepliesTest, SmallAnswersAreNotBehindBulk) {
  ASSERT_TRUE(ask(1, 0, kSmallMax + 1));
  EXPECT_FALSE(replies_.has_waiting(false));
  ASSERT_TRUE(ask(2, 0, kSmallMax));
  EXPECT_TRUE(replies_.has_waiting(false) && replies_.has_waiting(true));
  replies_.frame_next(false, 0, outlets_[0]);
  const auto frames = frames_of(outlets_[0]);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].u32(0), 2u);
  EXPECT_EQ(frames[0].payload.size(), kSmallMax);
}

TEST_F(ReadRepliesTest, AnAnswerUpToTheLimitIsCopied) {
  ASSERT_TRUE(ask(1, 0, kInlineMax));
  ASSERT_TRUE(ask(2, 0, kInlineMax + 1));
  replies_.frame_next(false, 0, outlets_[0]);
  EXPECT_EQ(replies_.count(), 1u) << "the first is done with the region";
  replies_.frame_next(false, 0, outlets_[0]);
  EXPECT_EQ(replies_.count(), 1u);
  static_cast<void>(bytes_of(outlets_[0]));
  release(0);
  EXPECT_EQ(replies_.count(), 0u);
}

TEST_F(ReadRepliesTest, ALargeAnswerGoesInFrames) {
  ASSERT_TRUE(ask(1, 0, wire::kDataMax + 1));
  replies_.frame_next(true, 1, outlets_[1]);
  ASSERT_TRUE(replies_.has_rest(1) && replies_.has_rests());
  replies_.frame_rest(1, outlets_[1]);
  EXPECT_FALSE(replies_.has_rests());
  const auto frames = frames_of(outlets_[1]);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].payload.size(), wire::kDataMax);
  EXPECT_EQ(frames[0].head.flags & wire::kFlagLast, 0);
  EXPECT_EQ(frames[1].payload.size(), 1u);
  EXPECT_NE(frames[1].head.flags & wire::kFlagLast, 0);
  EXPECT_EQ(replies_.bytes(), wire::kDataMax + 1u);
}

TEST_F(ReadRepliesTest, AReadOutOfBoundsIsAcknowledgedAndNoMore) {
  ASSERT_TRUE(ask(1, memory.size() - 1, 1));
  ASSERT_TRUE(ask(2, memory.size() - 1, 2));
  EXPECT_EQ(acked(), (Acked{{2, wire::Outcome::kOutOfBounds}}));
  EXPECT_EQ(replies_.count(), 1u);
}

TEST_F(ReadRepliesTest, APeerHasSoManyReadsOutstanding) {
  for (std::uint32_t tag = 0; tag < kReadsMax; ++tag) ASSERT_TRUE(ask(tag, 0, 5000)) << tag;
  EXPECT_FALSE(ask(kReadsMax, 0, 5000));
}

// The peer may have an answer before the stream lets go of it.
TEST_F(ReadRepliesTest, AnswersThatWereSentCountNoMoreUpToABound) {
  for (std::uint32_t tag = 0; tag < kReadsHeldMax; ++tag) {
    ASSERT_TRUE(ask(tag, 0, 5000)) << tag;
    replies_.frame_next(true, 1, outlets_[1]);
    static_cast<void>(bytes_of(outlets_[1], UINT64_MAX, false));
  }
  EXPECT_FALSE(ask(kReadsHeldMax, 0, 5000));
}

TEST_F(ReadRepliesTest, AnAnswerThatWaitsIsWithdrawnWhenItsRegionCloses) {
  ASSERT_TRUE(ask(1, 0, 5000));
  close_region();
  EXPECT_TRUE(replies_.stop_region(region->index, region->generation, outlets_));
  EXPECT_EQ(acked(), (Acked{{1, wire::Outcome::kClosed}}));
  EXPECT_FALSE(replies_.has_waiting(true));
  EXPECT_EQ(replies_.count(), 0u);
}

TEST_F(ReadRepliesTest, OneThatHasBegunEndsAsFiller) {
  ASSERT_TRUE(ask(1, 0, 5000));
  replies_.frame_next(true, 1, outlets_[1]);
  auto bytes = bytes_of(outlets_[1], 1000);
  EXPECT_TRUE(replies_.stop_region(region->index, region->generation, outlets_)) << "the stream has let go";
  const auto rest = bytes_of(outlets_[1]);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  const auto frames = cut(bytes);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].trailer, wire::Outcome::kClosed);
  EXPECT_LT(std::ranges::count(frames[0].payload, std::byte{0xee}), 1000);
}

TEST_F(ReadRepliesTest, BetweenTwoFramesAnEmptyOneSaysIt) {
  ASSERT_TRUE(ask(1, 0, wire::kDataMax + 1));
  replies_.frame_next(true, 1, outlets_[1]);
  static_cast<void>(bytes_of(outlets_[1]));
  release(1);
  close_region();
  replies_.stop_closed(outlets_);
  ASSERT_TRUE(replies_.has_rest(1));
  replies_.frame_rest(1, outlets_[1]);
  const auto frames = frames_of(outlets_[1]);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_TRUE(frames[0].payload.empty());
  EXPECT_EQ(replies_.count(), 0u);
}

TEST_F(ReadRepliesTest, AStreamThatKeepsAClosedRegionForTooLongIsTold) {
  ASSERT_TRUE(ask(1, 0, 5000));
  replies_.frame_next(true, 1, outlets_[1]);
  static_cast<void>(bytes_of(outlets_[1], UINT64_MAX, false));
  EXPECT_FALSE(replies_.stop_region(region->index, region->generation, outlets_));
  EXPECT_EQ(replies_.kept(), 1u);
  replies_.begin_period(kKeepPeriods);
  EXPECT_FALSE(replies_.is_late());
  replies_.begin_period(kKeepPeriods + 1);
  EXPECT_TRUE(replies_.is_late());
  outlets_[1].released(outlets_[1].sent_total());
  release(1);
  EXPECT_EQ(replies_.kept(), 0u);
  EXPECT_FALSE(replies_.is_late());
}

TEST_F(ReadRepliesTest, WithThePathAllIsGone) {
  ASSERT_TRUE(ask(1, 0, 100));
  ASSERT_TRUE(ask(2, 0, 5000));
  replies_.clear();
  EXPECT_FALSE(replies_.has_waiting(false) || replies_.has_waiting(true));
  EXPECT_EQ(charges.account().operations(), 0u);
}

class ReadQuotaTest : public ReadRepliesTest {
 protected:
  ReadQuotaTest() : ReadRepliesTest({.operations = 2, .bytes = 10000}) {}
};

TEST_F(ReadQuotaTest, AnAnswerCountsUntilItIsReleased) {
  ASSERT_TRUE(ask(1, 0, 5000));
  ASSERT_TRUE(ask(2, 0, 5000));
  ASSERT_TRUE(ask(3, 0, 1));
  EXPECT_EQ(acked(), (Acked{{3, wire::Outcome::kTooManyOperations}}));
  replies_.frame_next(true, 1, outlets_[1]);
  static_cast<void>(bytes_of(outlets_[1]));
  release(1);
  ASSERT_TRUE(ask(4, 0, 5001));
  EXPECT_EQ(acked(), (Acked{{4, wire::Outcome::kTooManyBytes}}));
  ASSERT_TRUE(ask(5, 0, 5000));
  EXPECT_TRUE(acked().empty());
}

}  // namespace
}  // namespace hawser::backend::stream
