#include "worldsim/deadline_judge.h"

#include "worldsim/test_court.h"

namespace hawser::worldsim {
namespace {

using std::chrono::milliseconds;

class DeadlineJudgeTest : public testing::Test, protected TestCourt {
 protected:
  Deed& pending(DeedKind kind) {
    Deed& made = deed(0, kind);
    all[0]->pending.push_back(&made);
    return made;
  }
  bool is_late_after(Duration span) {
    universe.world.run_for(span);
    judge_.observe(*all[0]);
    return verdict.failed();
  }

  DeadlineJudge judge_{uses};
};

TEST_F(DeadlineJudgeTest, NothingOutlivesItsDeadline) {
  pending(DeedKind::kSend);
  EXPECT_FALSE(is_late_after(milliseconds(1300)));
  EXPECT_TRUE(is_late_after(milliseconds(1)));
}

TEST_F(DeadlineJudgeTest, WhoWasStoppedIsExcused) {
  pending(DeedKind::kSend);
  all[0]->excused = milliseconds(100);
  EXPECT_FALSE(is_late_after(milliseconds(1400)));
  EXPECT_TRUE(is_late_after(milliseconds(1)));
}

TEST_F(DeadlineJudgeTest, ACollectiveEndsSoonAfterARankHasDied) {
  pending(DeedKind::kCollective).due = universe.world.now() + std::chrono::hours(1);
  EXPECT_FALSE(is_late_after(std::chrono::seconds(10)));
  gone(2);
  EXPECT_FALSE(is_late_after(kNoticeMax));
  EXPECT_TRUE(is_late_after(milliseconds(1)));
}

TEST_F(DeadlineJudgeTest, ARankThatKnowsEndsItAtOnce) {
  pending(DeedKind::kCollective).due = universe.world.now() + std::chrono::hours(1);
  gone(2);
  universe.world.run_for(milliseconds(1));
  realm.parts[0].knows = universe.world.now();
  EXPECT_FALSE(is_late_after(milliseconds(20)));
  EXPECT_TRUE(is_late_after(milliseconds(1)));
}

TEST_F(DeadlineJudgeTest, AReceiveOfOneSourceGoesOn) {
  Deed& receive = pending(DeedKind::kReceive);
  receive.due = universe.world.now() + std::chrono::hours(1);
  receive.source = 1;
  gone(2);
  EXPECT_FALSE(is_late_after(std::chrono::seconds(10)));
  receive.source.reset();
  EXPECT_TRUE(is_late_after(milliseconds(1))) << "any source: one of them died";
}

TEST_F(DeadlineJudgeTest, TroubleExcusesAll) {
  pending(DeedKind::kSend);
  times.trouble(universe.world.now(), std::chrono::seconds(10));
  EXPECT_FALSE(is_late_after(std::chrono::seconds(9)));
  EXPECT_TRUE(is_late_after(std::chrono::seconds(1)));
}

}  // namespace
}  // namespace hawser::worldsim
