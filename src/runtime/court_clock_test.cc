#include "runtime/court_clock.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "runtime/test_ranks.h"

namespace hawser::runtime {
namespace {

using std::chrono::milliseconds;

class CourtClockTest : public TestRanks {
 protected:
  void begin(Duration heartbeat, Duration peer_timeout) {
    clock_.emplace(
        mailbox_, heartbeat, peer_timeout,
        CourtClock::Hooks{.settle = [this] { told_ += "settle "; }, .give_up = [this] { told_ += "give up "; }});
  }
  /// What was told until that moment.
  std::string until(Duration after) {
    carrier_.moment = kMoment + after;
    (void)mailbox_.expire(carrier_.moment);
    return told_;
  }

  std::string told_;
  std::optional<CourtClock> clock_;
};

TEST_F(CourtClockTest, LossesHaveTwoHeartbeatsAndTheVerdictThePeerTimeout) {
  begin(milliseconds(100), milliseconds(400));
  clock_->watch(true);
  EXPECT_EQ(until(milliseconds(199)), "");
  EXPECT_EQ(until(milliseconds(200)), "settle ");
  clock_->watch(true);
  EXPECT_EQ(until(milliseconds(599)), "settle ");
  EXPECT_EQ(until(milliseconds(600)), "settle give up ");
}

TEST_F(CourtClockTest, BothTimesTogetherAreASecondAndAHalfAtMost) {
  begin(std::chrono::seconds(60), std::chrono::seconds(60));
  clock_->watch(true);
  EXPECT_EQ(until(milliseconds(499)), "");
  EXPECT_EQ(until(milliseconds(500)), "settle ");
  EXPECT_EQ(until(milliseconds(1499)), "settle ");
  EXPECT_EQ(until(milliseconds(1500)), "settle give up ");
}

TEST_F(CourtClockTest, ADecisionStopsItAndWhatComesLaterBeginsAnew) {
  begin(milliseconds(100), milliseconds(400));
  clock_->watch(true);
  clock_->watch(false);
  EXPECT_EQ(until(milliseconds(900)), "");
  clock_->watch(true);
  EXPECT_EQ(until(milliseconds(1099)), "");
  EXPECT_EQ(until(milliseconds(1100)), "settle ");
}

TEST_F(CourtClockTest, AfterItGaveUpItRunsAgainOnlyWhereItIsAskedTo) {
  begin(milliseconds(100), milliseconds(400));
  clock_->watch(true);
  (void)until(milliseconds(200));
  EXPECT_EQ(until(milliseconds(600)), "settle give up ");
  EXPECT_EQ(until(milliseconds(5000)), "settle give up ");
  clock_->watch(true);
  EXPECT_EQ(until(milliseconds(5200)), "settle give up settle ");
}

TEST_F(CourtClockTest, ItsEndTellsNobody) {
  begin(milliseconds(100), milliseconds(400));
  clock_->watch(true);
  clock_.reset();
  EXPECT_EQ(until(milliseconds(900)), "");
}

}  // namespace
}  // namespace hawser::runtime
