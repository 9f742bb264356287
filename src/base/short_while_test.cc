#include "base/short_while.h"

#include <gtest/gtest.h>

#include <hawser/time.h>

namespace hawser::base {
namespace {

constexpr std::uint64_t kAges = std::uint64_t{1} << 62;  // Ticks.

TEST(ShortWhile, DoesNotLastBeforeItBegan) {
  ShortWhile none, some(kAges);
  EXPECT_FALSE(none.lasts());
  EXPECT_FALSE(some.lasts());
}

TEST(ShortWhile, LastsOnlyWhereTheCounterKeepsTime) {
  ShortWhile some(kAges);
  some.begin();
  EXPECT_EQ(some.lasts(), counter_keeps_time());
}

TEST(ShortWhile, EndsByTheCounter) {
  constexpr Duration kLength = std::chrono::microseconds(50);
  ShortWhile some(static_cast<std::uint64_t>(kLength.count()));
  some.begin();
  const Instant end = Clock::steady().now() + kLength;
  while (Clock::steady().now() < end) continue;
  EXPECT_FALSE(some.lasts());
}

TEST(ShortWhile, EndsWhenAskedTooOften) {
  ShortWhile some(kAges);
  some.begin();
  int lasted = 0;
  while (lasted < 10'000 && some.lasts()) ++lasted;
  EXPECT_LT(lasted, 1'000);
  some.begin();
  EXPECT_EQ(some.lasts(), counter_keeps_time());
}

}  // namespace
}  // namespace hawser::base
