#include "worldsim/status_judge.h"

#include "worldsim/test_court.h"

namespace hawser::worldsim {
namespace {

class StatusJudgeTest : public testing::Test, protected TestCourt {
 protected:
  bool is_right(const Deed& deed, const Status& status) {
    Verdict own(universe);
    const JudgeUses its{
        .universe = universe, .verdict = own, .fates = fates, .actors = actors, .times = times, .rules = rules};
    StatusJudge(its).check(deed, status);
    return !own.failed();
  }
};

TEST_F(StatusJudgeTest, AGoodEndNeedsNoReason) { EXPECT_TRUE(is_right(deed(0, DeedKind::kSend), Status())); }

TEST_F(StatusJudgeTest, ATimeOutNeedsADeadlineThatHasCome) {
  Deed& receive = deed(0, DeedKind::kReceive);
  EXPECT_FALSE(is_right(receive, ended(Code::kTimedOut)));
  universe.world.run_for(std::chrono::seconds(1));
  EXPECT_TRUE(is_right(receive, ended(Code::kTimedOut)));
}

TEST_F(StatusJudgeTest, ACollectiveIsLateOnlyWhereSomethingHeldItUp) {
  Deed& collective = deed(0, DeedKind::kCollective);
  universe.world.run_for(std::chrono::seconds(1));
  EXPECT_FALSE(is_right(collective, ended(Code::kTimedOut)));
  gone(2);
  EXPECT_TRUE(is_right(collective, ended(Code::kTimedOut)));
}

TEST_F(StatusJudgeTest, AReceiveIsNotLateWhileItsLetterWaits) {
  Deed& send = deed(1, DeedKind::kSend);
  send.letter = {.from = 1, .to = 0, .tag = 4, .size = 100};
  send.is_good = send.is_over = true;
  send.ended = universe.world.now();
  Deed& receive = deed(0, DeedKind::kReceive);
  receive.tag = 4;
  universe.world.run_for(std::chrono::seconds(1));
  EXPECT_FALSE(is_right(receive, ended(Code::kTimedOut)));
  receive.tag = 5;
  EXPECT_TRUE(is_right(receive, ended(Code::kTimedOut))) << "it waits for another";
}

TEST_F(StatusJudgeTest, ADisconnectionNamesARankThatFailed) {
  Deed& collective = deed(0, DeedKind::kCollective);
  EXPECT_FALSE(is_right(collective, ended(Code::kDisconnected, "rank-2"))) << "nobody failed";
  gone(2);
  EXPECT_TRUE(is_right(collective, ended(Code::kDisconnected, "rank-2")));
  EXPECT_FALSE(is_right(collective, ended(Code::kDisconnected, "rank-1")));
  Deed& send = deed(0, DeedKind::kSend);
  send.letter.to = 1;
  EXPECT_FALSE(is_right(send, ended(Code::kDisconnected))) << "its target lives";
  send.letter.to = 2;
  EXPECT_TRUE(is_right(send, ended(Code::kDisconnected)));
  Deed& agree = deed(0, DeedKind::kAgree);
  EXPECT_FALSE(is_right(agree, ended(Code::kDisconnected)));
  rules.is_automatic = true;
  EXPECT_TRUE(is_right(agree, ended(Code::kDisconnected))) << "the others recover";
}

TEST_F(StatusJudgeTest, SomebodyCancelledWhatIsCancelled) {
  Deed& send = deed(0, DeedKind::kSend);
  EXPECT_FALSE(is_right(send, ended(Code::kCancelled)));
  send.is_cancelled = true;
  EXPECT_TRUE(is_right(send, ended(Code::kCancelled)));
  Deed& collective = deed(0, DeedKind::kCollective);
  EXPECT_FALSE(is_right(collective, ended(Code::kCancelled)));
  realm.disturbances.insert(Code::kCancelled);
  EXPECT_TRUE(is_right(collective, ended(Code::kCancelled)));
}

TEST_F(StatusJudgeTest, OnlyMisfitsAndShortReceivesAreInvalid) {
  Deed& receive = deed(0, DeedKind::kReceive);
  receive.capacity = 10;
  EXPECT_TRUE(is_right(receive, ended(Code::kInvalid)));
  EXPECT_FALSE(is_right(deed(0, DeedKind::kSend), ended(Code::kInvalid)));
}

TEST_F(StatusJudgeTest, ACallIsRefusedByItsHandler) {
  Remote remote{.to = 1};
  Deed& call = deed(0, DeedKind::kCall);
  call.remote = &remote;
  call.handler = "echo";
  EXPECT_FALSE(is_right(call, ended(Code::kNotFound)));
  EXPECT_FALSE(is_right(call, ended(Code::kDenied)));
  call.handler = "nobody";
  EXPECT_TRUE(is_right(call, ended(Code::kNotFound)));
  call.handler = "refuse";
  EXPECT_TRUE(is_right(call, ended(Code::kDenied)));
}

TEST_F(StatusJudgeTest, AShrinkIsDeniedWithoutAMajority) {
  Deed& shrink = deed(0, DeedKind::kShrink);
  gone(1);
  gone(2);
  EXPECT_FALSE(is_right(shrink, ended(Code::kDenied))) << "this run does not ask for one";
  rules.has_majority = true;
  EXPECT_TRUE(is_right(shrink, ended(Code::kDenied)));
}

TEST_F(StatusJudgeTest, AShrinkIsNotDeniedWhileAllLive) {
  rules.has_majority = true;
  EXPECT_FALSE(is_right(deed(0, DeedKind::kShrink), ended(Code::kDenied)));
}

TEST_F(StatusJudgeTest, ARankThatIsGoneAndLeftCountsOnceAgainstAMajority) {
  rules.has_majority = true;
  Deed& shrink = deed(0, DeedKind::kShrink);
  fates.on_left(*all[1]);
  gone(1);
  EXPECT_FALSE(is_right(shrink, ended(Code::kDenied))) << "two of three are left";
  gone(2);
  EXPECT_TRUE(is_right(shrink, ended(Code::kDenied)));
}

TEST_F(StatusJudgeTest, OtherEndsAreNone) { EXPECT_FALSE(is_right(deed(0, DeedKind::kSend), ended(Code::kFailed))); }

}  // namespace
}  // namespace hawser::worldsim
