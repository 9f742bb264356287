#include "base/recent_clock.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

class StepClock final : public Clock {
 public:
  Instant now() const override { return Instant::from_ns(++reads); }
  mutable std::int64_t reads = 0;
};

TEST(RecentClock, AnotherClockIsAskedEachTime) {
  const StepClock clock;
  RecentClock recent(clock);
  EXPECT_EQ(recent.now().ns(), 1);
  EXPECT_EQ(recent.now().ns(), 2);
}

TEST(RecentClock, NeverGoesBackAndIsNeverOld) {
  const Clock& clock = Clock::steady();
  RecentClock recent(clock);
  Instant before = recent.now();
  for (int i = 0; i < 100'000; ++i) {
    const Instant earliest = clock.now() - RecentClock::kStale;
    const Instant now = recent.now();
    ASSERT_GE(now, before);
    ASSERT_GE(now, earliest);
    ASSERT_LE(now, clock.now());
    before = now;
  }
}

TEST(RecentClock, KnowsThatTimePassedWhileNobodyAsked) {
  RecentClock recent(Clock::steady());
  const Instant before = recent.now();
  const Instant later = before + std::chrono::milliseconds(2);
  while (Clock::steady().now() < later) continue;
  EXPECT_GE(recent.now(), later);
}

// A user's loop that turns without a pause: most calls must not ask the system, else this class is for nothing.
TEST(RecentClock, ReusesWhatItReadWhereTheCounterKeepsTime) {
  if (!counter_keeps_time()) GTEST_SKIP() << "this system does not keep its time by the processor's counter";
  RecentClock recent(Clock::steady());
  int same = 0;
  Instant before = recent.now();
  for (int i = 0; i < 10'000; ++i) {
    const Instant now = recent.now();
    same += now == before ? 1 : 0;
    before = now;
  }
  EXPECT_GT(same, 5'000);
}

}  // namespace
}  // namespace hawser::base
