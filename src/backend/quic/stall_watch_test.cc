#include "backend/quic/stall_watch.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hawser::backend::quic {
namespace {

using namespace std::chrono_literals;

TEST(StallWatch, EndsWhatStoodStillAllTheTime) {
  const Instant start = Instant::from_ns(0) + 1h;
  StallWatch watch;
  EXPECT_EQ(watch.due(1s), Instant::max());
  EXPECT_FALSE(watch.note(true, start, 1s));
  EXPECT_FALSE(watch.note(true, start + 999ms, 1s));
  EXPECT_EQ(watch.due(1s), start + 1s);
  EXPECT_FALSE(watch.note(false, start + 999ms, 1s)) << "it moved";
  EXPECT_EQ(watch.due(1s), Instant::max());
  EXPECT_FALSE(watch.note(true, start + 1s, 1s));
  EXPECT_TRUE(watch.note(true, start + 2s, 1s));
}

TEST(StallWatch, IsPatientForThreeTimeoutsAndAQuarterOfASecond) {
  EXPECT_EQ(StallWatch::patience(1ms), 250ms);
  EXPECT_EQ(StallWatch::patience(100ms), 300ms);
}

}  // namespace
}  // namespace hawser::backend::quic
