#include "compat/pace.h"

#include <gtest/gtest.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

TEST(PaceTest, EachTickIsDueOnce) {
  Pace pace;
  for (std::int64_t tick = 0; tick < 100; ++tick) {
    EXPECT_TRUE(pace.is_due_at(tick)) << tick;
    EXPECT_FALSE(pace.is_due_at(tick)) << tick;
  }
}

TEST(PaceTest, OneOfManyCallsWithinATickIsDue) {
  Pace pace;
  EXPECT_TRUE(pace.is_due_at(7));
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 1; i < Pace::kCallsMax; ++i) EXPECT_FALSE(pace.is_due_at(7)) << i;
    EXPECT_TRUE(pace.is_due_at(7));
  }
}

TEST(PaceTest, TheClockIsLookedAt) {
  Pace pace;
  EXPECT_TRUE(pace.is_due());
  std::uint32_t calls = 1;
  while (!pace.is_due()) ++calls;
  EXPECT_LE(calls, Pace::kCallsMax);
}

}  // namespace
}  // namespace compat
HAWSER_NAMESPACE_END
