#include "worldsim/verdict.h"

#include <gtest/gtest.h>

#include "worldsim/trouble_times.h"

namespace hawser::worldsim {
namespace {

TEST(WorldVerdict, TheFirstBrokenPromiseCounts) {
  sim::Universe universe{{.seed = 7, .trace = {}}};
  Verdict verdict(universe);
  EXPECT_FALSE(verdict.failed());
  verdict.fail("this");
  verdict.fail("that");
  EXPECT_TRUE(verdict.failed());
  EXPECT_NE(verdict.failure().find("this"), std::string::npos);
}

TEST(TroubleTimes, TroubleDelaysWhatIsOnItsWay) {
  TroubleTimes times;
  const Instant now = Instant::from_ns(1'000'000);
  times.delay(now, std::chrono::seconds(1));
  EXPECT_EQ(times.troubled_until(), Instant::min());
  EXPECT_EQ(times.delayed_until(), now + std::chrono::seconds(1) + kNoticeMax);
  times.trouble(now, std::chrono::seconds(2));
  EXPECT_EQ(times.troubled_until(), now + std::chrono::seconds(2));
  times.trouble(now, std::chrono::seconds(1));
  EXPECT_EQ(times.troubled_until(), now + std::chrono::seconds(2)) << "the longest counts";
}

}  // namespace
}  // namespace hawser::worldsim
