#include "schedule/hosts.h"

#include <gtest/gtest.h>

namespace hawser::schedule {
namespace {

using Ranks = std::vector<std::uint32_t>;

Ranks ranks_of(const Members& members) {
  Ranks all;
  for (std::uint32_t number = 0; number < members.size; ++number) all.push_back(members.world_rank(number));
  return all;
}

TEST(Hosts, TheFirstRankOfAHostLeadsItButTheRootOnItsOwn) {
  const Ranks hosts = {7, 3, 7, 3, 7, 3};
  const Hosts first(hosts, 0, 0);
  EXPECT_EQ(ranks_of(first.mates()), (Ranks{0, 2, 4}));
  EXPECT_EQ(ranks_of(first.leaders()), (Ranks{0, 1}));
  const Hosts rooted(hosts, 4, 4);
  EXPECT_TRUE(rooted.is_leader());
  EXPECT_EQ(ranks_of(rooted.mates()), (Ranks{4, 0, 2}));
  EXPECT_EQ(ranks_of(rooted.leaders()), (Ranks{4, 1}));
  EXPECT_EQ(rooted.leaders().rank, 0U);
  EXPECT_EQ(Hosts(hosts, 1, 4).leaders().rank, 1U);
  EXPECT_FALSE(Hosts(hosts, 0, 4).is_leader());
}

TEST(Hosts, RanksOfOneColumnHaveTheSameNumberOnTheirHosts) {
  const Ranks hosts = {0, 0, 1, 1, 2, 2};
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
    const Hosts seen(hosts, rank, 0);
    ASSERT_TRUE(seen.has_lane());
    EXPECT_EQ(ranks_of(seen.column()), rank % 2 == 0 ? (Ranks{0, 2, 4}) : (Ranks{1, 3, 5}));
    EXPECT_EQ(seen.column().rank, rank / 2);
    EXPECT_EQ(seen.mates().rank, rank % 2);
  }
}

TEST(Hosts, TheSmallestHostSaysHowManyRanksHaveTwins) {
  EXPECT_EQ(Hosts(Ranks{0, 1, 0, 1}, 0, 0).lanes(), 2U);
  const Ranks hosts = {0, 1, 0, 1, 1};
  const Hosts uneven(hosts, 3, 0);
  EXPECT_EQ(uneven.ranks_max(), 3U);
  EXPECT_EQ(uneven.hosts(), 2U);
  EXPECT_EQ(uneven.lanes(), 2U);
  EXPECT_EQ(ranks_of(uneven.column()), (Ranks{2, 3}));
  EXPECT_TRUE(uneven.has_lane());
  EXPECT_FALSE(Hosts(hosts, 4, 0).has_lane());
}

TEST(Hosts, AreNumberedAsTheirLeaders) {
  const Ranks hosts = {5, 3, 3, 9};
  const Hosts seen(hosts, 2, 3);
  const auto ranks_at = [&](std::uint32_t host) {
    return Ranks(seen.ranks_of(host).begin(), seen.ranks_of(host).end());
  };
  EXPECT_EQ(ranks_of(seen.leaders()), (Ranks{3, 1, 0}));
  EXPECT_EQ(ranks_at(0), (Ranks{3}));
  EXPECT_EQ(ranks_at(1), (Ranks{1, 2}));
  EXPECT_EQ(seen.host(), 1U);
}

TEST(Hosts, AreSeveralWhereNotAllRanksShareOne) {
  EXPECT_FALSE(Hosts::are_several({}));
  EXPECT_FALSE(Hosts::are_several(Ranks{5, 5}));
  EXPECT_TRUE(Hosts::are_several(Ranks{1, 2}));
  EXPECT_TRUE(Hosts::are_several(Ranks{5, 5, 4}));
}

TEST(Hosts, AreRunsWhereTheirRanksFollowOneAnother) {
  EXPECT_TRUE(Hosts::are_runs({}));
  EXPECT_TRUE(Hosts::are_runs(Ranks{7, 7, 3, 5, 5}));
  EXPECT_FALSE(Hosts::are_runs(Ranks{7, 3, 7}));
}

TEST(Hosts, LevelsNeedSeveralHostsAndCompany) {
  EXPECT_FALSE(Hosts::has_levels({}));
  EXPECT_FALSE(Hosts::has_levels(Ranks{5}));
  EXPECT_FALSE(Hosts::has_levels(Ranks{5, 5, 5})) << "one host";
  EXPECT_FALSE(Hosts::has_levels(Ranks{1, 2, 3})) << "everybody alone";
  EXPECT_TRUE(Hosts::has_levels(Ranks{1, 2, 1}));
}

}  // namespace
}  // namespace hawser::schedule
