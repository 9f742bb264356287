#include "worldsim/result_judge.h"

#include "worldsim/test_court.h"

namespace hawser::worldsim {
namespace {

class ResultJudgeTest : public testing::Test, protected TestCourt {
 protected:
  /// A sum of bytes at rank 0 with the right result, but one byte more.
  void sum(std::uint8_t more) {
    Deed& collective = deed(0, DeedKind::kCollective);
    collective.number = 1;
    collective.act.what = schedule::Operation::kAllReduce;
    collective.act.op = ReduceOp::kSum;
    collective.act.size = 3;
    collective.act.count = 8;
    result_.own = output_of(collective.act, 0);
    result_.own[0] ^= std::byte{more};
    result_.bytes = result_.own;
    collective.output = &result_;
    judge_.check_collective(collective, Status());
  }
  void vote(std::uint32_t rank, bool flag) { realm.parts[rank].votes.emplace_back(flag); }

  Loan result_;
  ResultJudge judge_{uses, realms};
};

TEST_F(ResultJudgeTest, ACollectiveGivesTheRightBytes) {
  sum(0);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  EXPECT_TRUE(realm.parts[0].good.contains(1));
  sum(1);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(ResultJudgeTest, ABarrierWaitsForAllRanks) {
  Deed& barrier = deed(0, DeedKind::kCollective);
  barrier.number = 1;
  for (Part& part : realm.parts) part.begun = 1;
  judge_.check_collective(barrier, Status());
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  realm.parts[2].begun = 0;
  judge_.check_collective(barrier, Status());
  EXPECT_NE(verdict.failure().find("rank 2"), std::string::npos);
}

TEST_F(ResultJudgeTest, ABadEndDoomsTheRealm) {
  judge_.check_collective(deed(0, DeedKind::kCollective), ended(Code::kDisconnected, "rank-2"));
  EXPECT_TRUE(realm.doomed);
  EXPECT_TRUE(realm.parts[0].knows);
  EXPECT_FALSE(realm.parts[1].knows);
}

TEST_F(ResultJudgeTest, AnAgreementIsTheAndOfTheVotes) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) vote(rank, true);
  judge_.on_agreed(deed(0, DeedKind::kAgree), true);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  judge_.on_agreed(deed(1, DeedKind::kAgree), false);
  EXPECT_TRUE(verdict.failed()) << "another answer than rank 0 got";
}

TEST_F(ResultJudgeTest, OneVoteAgainstIsEnough) {
  vote(0, true);
  vote(1, false);
  vote(2, true);
  judge_.on_agreed(deed(0, DeedKind::kAgree), false);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  realm.parts[0].decisions.clear();
  judge_.on_agreed(deed(0, DeedKind::kAgree), true);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(ResultJudgeTest, FalseNeedsAVoteAgainst) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) vote(rank, true);
  judge_.on_agreed(deed(0, DeedKind::kAgree), false);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(ResultJudgeTest, SomebodyNoticesAMisfitThatAllBegan) {
  Deed& collective = deed(0, DeedKind::kCollective);
  collective.number = 1;
  judge_.check_misfit(collective);
  EXPECT_FALSE(verdict.failed()) << "not all have begun it";
  for (Part& part : realm.parts) part.begun = 1;
  judge_.check_misfit(collective);
  EXPECT_TRUE(verdict.failed());
}

}  // namespace
}  // namespace hawser::worldsim
