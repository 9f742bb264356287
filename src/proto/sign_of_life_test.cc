#include "proto/sign_of_life.h"

#include <gtest/gtest.h>

namespace hawser::proto {
namespace {

Instant since_start(std::int64_t ms) { return Instant::from_ns(ms * 1000000); }

TEST(SignOfLife, IsDueAnIntervalAfterTheLastWord) {
  SignOfLife sign(std::chrono::milliseconds(100), since_start(0));
  EXPECT_FALSE(sign.on_heard(since_start(99)));
  EXPECT_TRUE(sign.on_heard(since_start(100)));
  EXPECT_FALSE(sign.on_heard(since_start(199)));
  EXPECT_TRUE(sign.on_heard(since_start(200)));
}

TEST(SignOfLife, IsNotDueWhereSomethingIsSaidAnyway) {
  SignOfLife sign(std::chrono::milliseconds(100), since_start(0));
  for (int now = 0; now < 1000; now += 50) {
    sign.on_spoken(since_start(now));
    EXPECT_FALSE(sign.on_heard(since_start(now + 99)));
  }
}

}  // namespace
}  // namespace hawser::proto
