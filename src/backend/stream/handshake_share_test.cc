#include "backend/stream/handshake_share.h"

#include <gtest/gtest.h>

namespace hawser::backend {
namespace {

using std::chrono::microseconds;

TEST(HandshakeShare, WorkTakesAQuarterOfTheTime) {
  HandshakeShare share;
  const Instant start = Instant() + microseconds(1000);
  ASSERT_TRUE(share.may_work(start));
  share.worked(start, start + microseconds(300));
  EXPECT_FALSE(share.may_work(start + microseconds(1199)));
  EXPECT_TRUE(share.may_work(start + microseconds(1200)));
}

TEST(HandshakeShare, ThoseThatWaitComeInTurn) {
  HandshakeShare share;
  const Instant start = Instant() + microseconds(1000);
  int one = 0, two = 0, three = 0;
  EXPECT_EQ(share.next(start), nullptr);
  share.wait(&one), share.wait(&two), share.wait(&three), share.wait(&one);
  share.forget(&two);
  share.worked(start, start + microseconds(100));
  EXPECT_EQ(share.next(start + microseconds(399)), nullptr);
  EXPECT_EQ(share.next(start + microseconds(400)), &one);
  EXPECT_TRUE(share.is_awaited());
  EXPECT_EQ(share.next(start + microseconds(400)), &three);
  EXPECT_EQ(share.next(start + microseconds(400)), nullptr) << "each once, and none that is gone";
  EXPECT_FALSE(share.is_awaited());
}

}  // namespace
}  // namespace hawser::backend
