#include "worldsim/call_judge.h"

#include "worldsim/test_court.h"

namespace hawser::worldsim {
namespace {

class CallJudgeTest : public testing::Test, protected TestCourt {
 protected:
  CallJudgeTest() { remote_.due = universe.world.now() + std::chrono::seconds(1); }
  void run_at(std::uint32_t rank) { judge_.on_run(realm, rank, 9); }

  CallJudge judge_{uses};
  Remote& remote_ = judge_.make(9, realm, 0, 1);
};

TEST_F(CallJudgeTest, RunsOnceAtItsRank) {
  run_at(1);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  EXPECT_EQ(remote_.runs, 1u);
  run_at(1);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(CallJudgeTest, NotAtAnotherRank) {
  run_at(2);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(CallJudgeTest, NotWithoutACaller) {
  judge_.on_run(realm, 1, 10);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(CallJudgeTest, NotAfterItsDeadlineUnlessThereWasTrouble) {
  universe.world.run_for(std::chrono::milliseconds(1300));
  times.trouble(universe.world.now(), std::chrono::milliseconds(1));
  run_at(1);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  remote_.runs = 0;
  universe.world.run_for(std::chrono::milliseconds(2));
  run_at(1);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(CallJudgeTest, NotAfterItWasTakenBack) {
  remote_.taken_back = universe.world.now();
  universe.world.run_for(std::chrono::milliseconds(201));
  run_at(1);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(CallJudgeTest, AHandlerThatRefusesGivesNoAnswer) {
  Deed& call = deed(0, DeedKind::kCall);
  call.remote = &remote_;
  call.handler = "refuse";
  judge_.check_answer(call, ended(Code::kDenied));
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  judge_.check_answer(call, Status());
  EXPECT_TRUE(verdict.failed());
}

}  // namespace
}  // namespace hawser::worldsim
