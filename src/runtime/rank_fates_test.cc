// What one rank knows of the others.

#include "runtime/rank_fates.h"

#include <gtest/gtest.h>

namespace hawser::runtime {
namespace {

using Ranks = std::vector<std::uint32_t>;

class RankFatesTest : public testing::Test {
 protected:
  RankFatesTest() {
    fates_.open({.world = "w", .size = 5, .name_of = [](std::uint32_t rank) { return "w." + std::to_string(rank); }});
  }
  static Status gone(const char* text = "it is gone") { return Status(Code::kDisconnected, text); }

  RankFates fates_;
};

TEST_F(RankFatesTest, AFailureIsNotedOnce) {
  EXPECT_TRUE(fates_.why_not().ok());
  EXPECT_TRUE(fates_.note_failed(3, gone()));
  EXPECT_FALSE(fates_.note_failed(3, gone("again")));
  EXPECT_TRUE(fates_.note_failed(1, gone()));
  EXPECT_EQ(fates_.failed(), (Ranks{1, 3}));
  EXPECT_EQ(fates_.failures(), (Ranks{3, 1}));
  EXPECT_EQ(fates_.failures_so_far(), 2U);
  EXPECT_EQ(fates_.why_not().peer(), "w.3") << "the first stays the reason";
  EXPECT_NE(fates_.why_not().to_string().find("rank 3 of world 'w' failed"), std::string::npos);
  EXPECT_EQ(fates_.failure(1).peer(), "w.1");
  EXPECT_TRUE(fates_.failure(2).ok());
}

TEST_F(RankFatesTest, WhoLeftDoesNotFail) {
  EXPECT_TRUE(fates_.note_left(2));
  EXPECT_FALSE(fates_.note_left(2));
  EXPECT_FALSE(fates_.note_failed(2, gone()));
  EXPECT_FALSE(fates_.note_lost(2, gone()));
  EXPECT_NE(fates_.why_not().to_string().find("rank 2 has left world 'w'"), std::string::npos);
  EXPECT_TRUE(fates_.unusable().empty());
}

TEST_F(RankFatesTest, ALostRankIsUnusableUntilItIsDecided) {
  EXPECT_TRUE(fates_.note_lost(4, gone()));
  EXPECT_FALSE(fates_.note_lost(4, gone()));
  EXPECT_FALSE(fates_.has_any_failed());
  EXPECT_EQ(fates_.unusable(), Ranks{4});
  EXPECT_EQ(fates_.why_not().peer(), "w.4");
  EXPECT_EQ(fates_.loss(4).cause().message(), "it is gone");
  EXPECT_TRUE(fates_.note_failed(4, gone())) << "the court left it out";
  EXPECT_EQ(fates_.unusable(), Ranks{4});
}

TEST_F(RankFatesTest, ALostRankThatLeftIsNotUnusable) {
  EXPECT_TRUE(fates_.note_lost(4, gone()));
  EXPECT_TRUE(fates_.note_left(4));
  EXPECT_TRUE(fates_.unusable().empty());
}

TEST_F(RankFatesTest, TheReasonsHaveAnOrder) {
  EXPECT_FALSE(fates_.have_only_left());
  fates_.note_left(1);
  EXPECT_TRUE(fates_.have_only_left());
  EXPECT_NE(fates_.why_not().message().find("has left"), std::string::npos);
  fates_.note_lost(2, gone());
  EXPECT_FALSE(fates_.have_only_left());
  EXPECT_EQ(fates_.why_not().peer(), "w.2");
  EXPECT_TRUE(fates_.revoke(Status(Code::kCancelled, "revoked")));
  EXPECT_FALSE(fates_.revoke(Status(Code::kCancelled, "later")));
  EXPECT_EQ(fates_.why_not().message(), "revoked");
  fates_.note_failed(3, gone());
  EXPECT_EQ(fates_.why_not().peer(), "w.3");
  EXPECT_TRUE(fates_.exclude(Status(Code::kDisconnected, "excluded")));
  EXPECT_FALSE(fates_.exclude(Status(Code::kDisconnected, "later")));
  EXPECT_EQ(fates_.why_not().message(), "excluded");
  EXPECT_FALSE(fates_.note_lost(4, gone())) << "an excluded rank hears no court";
}

TEST_F(RankFatesTest, TheUserAcknowledgesWhatFailedSoFar) {
  fates_.note_failed(1, gone());
  EXPECT_EQ(fates_.unacknowledged().peer(), "w.1");
  fates_.acknowledge();
  EXPECT_TRUE(fates_.unacknowledged().ok());
  fates_.note_failed(2, gone());
  EXPECT_EQ(fates_.unacknowledged().peer(), "w.2");
  EXPECT_EQ(fates_.first_failure().peer(), "w.1");
}

TEST_F(RankFatesTest, CountsForAQuorum) {
  EXPECT_TRUE(fates_.note_dead(1));
  EXPECT_FALSE(fates_.note_dead(1));
  fates_.note_failed(1, gone());
  fates_.note_failed(2, gone());
  fates_.note_left(3);
  EXPECT_EQ(fates_.count_dead(), 1U);
  EXPECT_EQ(fates_.dead(), (std::vector<bool>{false, true, false, false, false}));
  EXPECT_EQ(fates_.count_left_without({}), 2U);
  EXPECT_EQ(fates_.count_left_without({4, 2}), 1U) << "one that failed is not counted twice";
}

TEST_F(RankFatesTest, AnEndIsExplained) {
  const Status late(Code::kTimedOut, "late");
  EXPECT_EQ(fates_.explained(late).code(), Code::kTimedOut);
  const Status ended = gone("the path ended").with_peer("w.2");
  EXPECT_NE(fates_.explained(ended).message().find("rank 2 of world 'w' failed"), std::string_view::npos);
  EXPECT_EQ(fates_.explained(gone("elsewhere").with_peer("x")).message(), "elsewhere");
  fates_.note_left(2);
  EXPECT_NE(fates_.explained(ended).message().find("rank 2 has left"), std::string_view::npos);
  EXPECT_EQ(fates_.explained(gone("the path ended").with_peer("w.1")).message(), "the path ended")
      << "there is a reason that is known already";
}

}  // namespace
}  // namespace hawser::runtime
