#include "sim/reasons.h"

#include <gtest/gtest.h>

#include "sim/test_lives.h"

namespace hawser::simulation {
namespace {

using namespace std::chrono_literals;
using Harm = Reasons::Harm;

struct ReasonsTest : testing::Test, TwoLives {
  Instant now() { return universe.world.now(); }
  bool may_be_cut_off() { return reasons.may_be_cut_off(a, b, now()); }
  bool may_be_late(Duration time) { return reasons.may_be_late(a, b, now(), now() + time); }
};

TEST_F(ReasonsTest, WithoutHarmThereIsNone) {
  EXPECT_FALSE(may_be_cut_off());
  EXPECT_FALSE(may_be_late(1s));
  EXPECT_TRUE(may_be_late(1ms)) << "so little time is no promise";
}

TEST_F(ReasonsTest, WhoIsGoneOrWasGivenUpMayBeCutOff) {
  a.bonds[&b].broken = true;
  EXPECT_TRUE(may_be_cut_off());
  a.bonds[&b].broken = false;
  b.alive = false;
  EXPECT_TRUE(may_be_cut_off());
  EXPECT_TRUE(may_be_late(1s));
}

TEST_F(ReasonsTest, ACutPartsThoseThatItLiesBetween) {
  reasons.trouble(0, 2, 1s, Harm::kCutsOff);
  EXPECT_FALSE(may_be_cut_off());
  reasons.trouble(1, 0, 1s, Harm::kCutsOff);
  EXPECT_TRUE(may_be_cut_off());
}

TEST_F(ReasonsTest, SilencesPartOnceTheyAreLongerThanThePatienceTogether) {
  reasons.expect_patience(300ms);
  reasons.trouble(0, 1, 200ms, Harm::kSilences);
  EXPECT_FALSE(may_be_cut_off());
  EXPECT_TRUE(may_be_late(1s)) << "but they delay";
  reasons.trouble(0, 1, 200ms, Harm::kSilences);
  EXPECT_TRUE(may_be_cut_off());
}

TEST_F(ReasonsTest, ADelayPartsNobodyAndIsOverSomeTimeAfterItsEnd) {
  reasons.trouble(0, 1, 100ms, Harm::kDelays);
  EXPECT_FALSE(may_be_cut_off());
  EXPECT_TRUE(may_be_late(800ms));
  EXPECT_FALSE(may_be_late(10s)) << "there was time enough after it";
}

}  // namespace
}  // namespace hawser::simulation
