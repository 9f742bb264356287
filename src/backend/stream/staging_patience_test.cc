#include "backend/stream/staging_patience.h"

#include <gtest/gtest.h>

namespace hawser::backend::stream {
namespace {

TEST(StagingPatience, APeerThatDoesNotMoveHasSoManyPeriods) {
  StagingPatience patience;
  EXPECT_TRUE(patience.lasts(0, 1));
  EXPECT_TRUE(patience.lasts(0, kStillPeriods));
  EXPECT_FALSE(patience.lasts(0, kStillPeriods + 1));
}

TEST(StagingPatience, OneThatMovesKeepsItsPlaceForLonger) {
  StagingPatience patience;
  for (std::uint32_t period = 1; period <= kHoldPeriods; ++period) {
    EXPECT_TRUE(patience.lasts(period, period)) << period;
  }
  EXPECT_FALSE(patience.lasts(kHoldPeriods + 1, kHoldPeriods + 1)) << "a little at a time, for ever";
}

TEST(StagingPatience, StandingStillIsCountedFromTheLastMove) {
  StagingPatience patience;
  EXPECT_TRUE(patience.lasts(0, 1));
  EXPECT_TRUE(patience.lasts(5, 30));
  EXPECT_TRUE(patience.lasts(5, 29 + kStillPeriods));
  EXPECT_FALSE(patience.lasts(5, 30 + kStillPeriods));
}

}  // namespace
}  // namespace hawser::backend::stream
