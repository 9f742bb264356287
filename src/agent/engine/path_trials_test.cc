// Paths that look good and break soon.

#include "agent/engine/path_trials.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class PathTrialsTest : public ::testing::Test {
 protected:
  void lose_one(std::uint64_t carried) {
    PathEntry entry;
    entry.agreed = true;
    entry.errors = 1;
    entry.trial.begin(rig_.now(), 0);
    entry.carried = carried;
    judge_trial(session_, entry, 2, rig_.now());
  }
  Rig rig_;
  Session& session_ = rig_.session_with(hand_peer("there"));
};

TEST_F(PathTrialsTest, PausesGrowWithEachThatDidNotWorkAndBeginAnewAfterOneThatDid) {
  const Duration first = pauses_before_opening(session_, 5s).first;
  lose_one(0);
  EXPECT_EQ(session_.trials_failed, 1u);
  EXPECT_TRUE(session_.fruitless.at(0));
  EXPECT_EQ(pauses_before_opening(session_, 5s).first, 2 * first);
  for (int i = 0; i < 20; ++i) lose_one(0);
  EXPECT_EQ(pauses_before_opening(session_, 5s).first, Duration(5s) / 8) << "there is time for eight tries";
  lose_one(1);
  EXPECT_EQ(session_.trials_failed, 0u);
  EXPECT_EQ(pauses_before_opening(session_, 5s).first, first);
}

}  // namespace
}  // namespace hawser::agent
