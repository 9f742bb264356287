#include "runtime/roster.h"

#include <gtest/gtest.h>

#include "runtime/test_ranks.h"

namespace hawser::runtime {
namespace {

class RosterTest : public TestRanks {
 protected:
  Roster roster_;
};

TEST_F(RosterTest, KnowsItsRanksByTheirPeers) {
  roster_.set_own(1);
  EXPECT_EQ(roster_.own(), 1U);
  EXPECT_EQ(roster_.size(), 0U) << "it is not open";
  roster_.open({ranks_[2], ranks_[0]});
  EXPECT_EQ(roster_.size(), 2U);
  EXPECT_EQ(roster_.rank_of(ranks_[2]), 0U);
  EXPECT_EQ(roster_.rank_of(ranks_[0]), 1U);
  EXPECT_EQ(roster_.rank_of(ranks_[1]), std::nullopt) << "it is no rank of this world";
  EXPECT_TRUE(roster_.sources().contains(source_of(ranks_[0])));
  EXPECT_FALSE(roster_.sources().contains(source_of(ranks_[1])));
}

TEST_F(RosterTest, KnowsWhatItsRanksAreInTheWorldThatWasOpened) {
  roster_.set_root_ranks({7, 3});
  roster_.open({ranks_[0], ranks_[1]});
  EXPECT_EQ(roster_.root_rank(0), 7U);
  EXPECT_EQ(roster_.rank_of_root(3), 1U);
  EXPECT_EQ(roster_.rank_of_root(0), std::nullopt);
}

}  // namespace
}  // namespace hawser::runtime
