#include "backend/stream/path_words.h"

#include <gtest/gtest.h>

#include "backend/stream/test_frames.h"

namespace hawser::backend::stream {
namespace {

class PathWordsTest : public testing::Test {
 protected:
  /// What was framed comes at `words`.
  bool hear(PathWords& words) {
    const auto bytes = bytes_of(outlet_);
    std::span<const std::byte> left = bytes;
    bool good = true;
    for (Inlet::Next next = next_of(inlet_, left); next != Inlet::Next::kMore; next = next_of(inlet_, left)) {
      if (next == Inlet::Next::kPayload) {
        words.on_identity_end();
      } else if (inlet_.head().type == wire::FrameType::kIdentity) {
        good = words.on_identity(inlet_) && good;
      } else {
        good = words.on_word(inlet_) && good;
      }
    }
    return good;
  }

  Outlet outlet_;
  Inlet inlet_;
  PathWords words_{true};
};

TEST_F(PathWordsTest, SignsOfLifeAreNewsOnce) {
  EXPECT_FALSE(words_.has_news(0));
  ASSERT_TRUE(PathWords::ping(outlet_, 5));
  ASSERT_TRUE(PathWords::pong(outlet_, 6));
  ASSERT_TRUE(hear(words_));
  EXPECT_TRUE(words_.has_news(0));
  const ControlNews news = words_.take(0, false);
  EXPECT_TRUE(news.ping && news.pong);
  EXPECT_EQ(news.ping_nonce, 5u);
  EXPECT_EQ(news.pong_nonce, 6u);
  EXPECT_FALSE(words_.has_news(0));
}

TEST_F(PathWordsTest, AGoodbyeWaitsForTheMessagesBeforeIt) {
  ASSERT_TRUE(PathWords::bye(outlet_, Code::kCancelled, "done", 3));
  ASSERT_TRUE(hear(words_));
  EXPECT_TRUE(words_.awaits_messages(2));
  EXPECT_FALSE(words_.has_news(2));
  EXPECT_FALSE(words_.take(2, false).bye) << "and it is kept";
  EXPECT_FALSE(words_.awaits_messages(3));
  EXPECT_TRUE(words_.has_news(3));
  const ControlNews news = words_.take(3, false);
  ASSERT_TRUE(news.bye);
  EXPECT_EQ(news.bye->reason, "done");
  EXPECT_FALSE(words_.has_news(3));
}

TEST_F(PathWordsTest, AGoodbyeWaitsForNothingOnceNoMoreCanCome) {
  ASSERT_TRUE(PathWords::bye(outlet_, Code::kCancelled, "done", 3));
  ASSERT_TRUE(hear(words_));
  EXPECT_TRUE(words_.take(0, true).bye);
}

TEST_F(PathWordsTest, ARenewedIdentityComesAsAWhole) {
  ASSERT_TRUE(PathWords::tell_identity(outlet_, base::as_bytes("proof")));
  ASSERT_TRUE(hear(words_));
  const ControlNews news = words_.take(0, false);
  EXPECT_TRUE(news.renewal);
  EXPECT_EQ(news.identity, "proof");
}

TEST_F(PathWordsTest, OnlyWhoHasAnIdentityMayTellOne) {
  PathWords without(false);
  ASSERT_TRUE(PathWords::tell_identity(outlet_, base::as_bytes("proof")));
  EXPECT_FALSE(hear(without));
}

TEST_F(PathWordsTest, AnEmptyIdentityIsSenseless) {
  ASSERT_TRUE(PathWords::tell_identity(outlet_, {}));
  EXPECT_FALSE(hear(words_));
}

TEST_F(PathWordsTest, WithoutRoomNothingIsSaid) {
  const std::vector<std::byte> much(1024);
  while (outlet_.has_room(wire::lead_size(8))) outlet_.add_bytes(much);
  EXPECT_FALSE(PathWords::ping(outlet_, 1));
  EXPECT_FALSE(PathWords::bye(outlet_, Code::kCancelled, "done", 0));
  EXPECT_FALSE(PathWords::tell_identity(outlet_, base::as_bytes("proof")));
}

}  // namespace
}  // namespace hawser::backend::stream
