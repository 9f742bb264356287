// What requests to the agent itself tell it: its inbox has room or has not.

#include "compat/request_notice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/test_clock.h"
#include "compat/parts.h"
#include "compat/test_peers.h"

namespace hawser::compat {
namespace {

struct RequestNoticeTest : ::testing::Test {
  void take() {
    for (int idle = 0; idle < 100; ++idle) {
      own.agent.poll();
      while (auto one = own.agent.take_notification()) {
        texts.push_back(std::move(one->text));
        idle = 0;
      }
    }
  }
  void fill() {
    const std::string text(kMessageMax, 'x');
    for (int refused = 0; refused < 100; ++refused) {
      own.agent.poll();
      while (self.notify(text).ok()) refused = 0;
    }
  }

  /// Sends a long one up to its reference.
  bool carry() {
    for (int i = 0; i < 100; ++i) {
      if (notice.carried().has_value()) return true;
      own.agent.poll();
    }
    return false;
  }

  TestAgent own{"a"};
  Peer self = own.agent.self();
  base::TestClock clock;
  NotificationSender sender;
  RequestNotice notice{sender, self, clock};
  std::vector<std::string> texts;
};

TEST_F(RequestNoticeTest, WithoutATextNothingIsTold) {
  notice.begin();
  EXPECT_FALSE(notice.goes_along());
  EXPECT_TRUE(notice.is_settled());
  EXPECT_FALSE(notice.sending(false).has_value());
  notice.end(true);
}

TEST_F(RequestNoticeTest, AShortOneGoesAlongAsItIs) {
  notice.set("hello");
  notice.begin();
  EXPECT_TRUE(notice.goes_along());
  EXPECT_EQ(*notice.carried(), "hello");
  EXPECT_FALSE(notice.is_long());
  EXPECT_TRUE(notice.is_settled());
  notice.set(std::string(kPartMagic));
  EXPECT_EQ(*notice.carried(), encode_part({.bytes = kPartMagic}));
}

TEST_F(RequestNoticeTest, OneThatGoesApartIsToldOnceTheDataIsThere) {
  notice.set("hello");
  notice.begin();
  notice.go_apart();
  EXPECT_FALSE(notice.goes_along());
  EXPECT_FALSE(notice.is_settled());
  EXPECT_FALSE(notice.sending(/*is_moving=*/true).has_value()) << "a short one waits for the data";
  EXPECT_TRUE(notice.sending(/*is_moving=*/false).has_value());
  const Result<bool> waits = notice.tell();
  ASSERT_TRUE(waits.has_value());
  EXPECT_FALSE(*waits);
  EXPECT_TRUE(notice.is_settled());
  take();
  EXPECT_EQ(texts, std::vector<std::string>{"hello"});
  notice.begin();
  EXPECT_TRUE(notice.goes_along()) << "the next post begins anew";
}

TEST_F(RequestNoticeTest, AFullInboxIsWaitedForAndThenTheDataIsThereWithoutAWord) {
  fill();
  notice.set("hello");
  notice.begin();
  notice.go_apart();
  EXPECT_TRUE(*notice.tell());
  clock.now_ = clock.now_ + RequestNotice::kRoomPatience;
  const Result<bool> late = notice.tell();
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code(), Code::kBusy);
  EXPECT_EQ(late.error().buffer(), BufferState::kComplete);
  take();
  EXPECT_FALSE(*notice.tell()) << "it has room again";
}

TEST_F(RequestNoticeTest, ALongOneThatIsGivenUpIsDroppedAtThePeer) {
  notice.set(std::string(2 * kPartBytesMax, 'x'));
  notice.begin();
  ASSERT_TRUE(carry());
  EXPECT_TRUE(notice.is_long());
  notice.end(/*came=*/false);
  EXPECT_FALSE(notice.is_long());
  take();
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(decode_part(texts.back())->kind, NotificationPart::Kind::kDrop);
}

TEST_F(RequestNoticeTest, ALongOneWhoseReferenceCameIsThePeers) {
  notice.set(std::string(2 * kPartBytesMax, 'x'));
  notice.begin();
  ASSERT_TRUE(carry());
  notice.end(/*came=*/true);
  take();
  EXPECT_EQ(texts.size(), 2u) << "no word about it";
}

TEST_F(RequestNoticeTest, InAChildTheRestIsTheParents) {
  notice.set(std::string(2 * kPartBytesMax, 'x'));
  notice.begin();
  ASSERT_TRUE(carry());
  notice.disown();
  notice.end(/*came=*/false);
  take();
  EXPECT_EQ(texts.size(), 2u);
}

}  // namespace
}  // namespace hawser::compat
