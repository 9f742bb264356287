#include "worldsim/shrink_judge.h"

#include "worldsim/test_court.h"

namespace hawser::worldsim {
namespace {

class ShrinkJudgeTest : public testing::Test, protected TestCourt {
 protected:
  void shrink(std::uint32_t rank, std::vector<std::uint32_t> old_ranks, std::uint64_t last_good = 0) {
    actors_ = judge_.check(deed(rank, DeedKind::kShrink),
                           {.old_ranks = std::move(old_ranks), .failed = {}, .last_good = last_good});
  }

  std::vector<std::size_t> actors_;
  ShrinkJudge judge_{uses};
};

TEST_F(ShrinkJudgeTest, AllGetTheRanksThatLive) {
  gone(1);
  shrink(0, {0, 2});
  shrink(2, {0, 2});
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  EXPECT_EQ(actors_, (std::vector<std::size_t>{0, 2}));
}

TEST_F(ShrinkJudgeTest, NobodyThatLivesIsLeftOut) {
  shrink(0, {0, 2});
  EXPECT_NE(verdict.failure().find("rank-1"), std::string::npos);
}

TEST_F(ShrinkJudgeTest, TheOldOrderStays) {
  shrink(0, {1, 0, 2});
  EXPECT_TRUE(verdict.failed());
}

TEST_F(ShrinkJudgeTest, TwoRanksGetTheSame) {
  gone(1);
  shrink(0, {0, 2});
  gone(2);
  shrink(2, {2});
  EXPECT_TRUE(verdict.failed());
}

TEST_F(ShrinkJudgeTest, AWorldOfFewIsNoMajority) {
  rules.has_majority = true;
  fates.may_accuse();
  shrink(0, {0, 2});
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  realm.shrunk.clear();
  shrink(1, {1});
  EXPECT_TRUE(verdict.failed());
}

TEST_F(ShrinkJudgeTest, TheLastGoodCollectiveEndedWellHere) {
  realm.parts[0].good = {1, 2};
  shrink(0, {0, 1, 2}, 2);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  shrink(0, {0, 1, 2}, 3);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(ShrinkJudgeTest, NobodyGoesOnWithTwoThatLostEachOther) {
  fates.on_parted(*all[0], *all[2]);
  shrink(0, {0, 1, 2});
  EXPECT_FALSE(verdict.failed()) << "it was begun before all knew";
  universe.world.run_for(kNoticeMax);
  shrink(1, {0, 1, 2});
  EXPECT_TRUE(verdict.failed());
}

}  // namespace
}  // namespace hawser::worldsim
