#include "runtime/routes.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace hawser::runtime {
namespace {

TEST(Routes, LeadAroundThoseThatAreGone) {
  Routes routes(Topology::regular(2), 0, 8);
  EXPECT_EQ(routes.hop_to(3), 1U);
  EXPECT_EQ(routes.hop_to(4), 1U) << "both ways are as long: the lower neighbour";
  EXPECT_EQ(routes.hop_to(0), kNoRank);
  EXPECT_TRUE(routes.exclude(2));
  EXPECT_FALSE(routes.exclude(2));
  EXPECT_EQ(routes.hop_to(3), 7U);
  EXPECT_EQ(routes.hop_to(2), kNoRank);
  EXPECT_TRUE(routes.exclude(7));
  EXPECT_EQ(routes.hop_to(3), kNoRank) << "no way is left";
  EXPECT_EQ(routes.hop_to(1), 1U);
}

TEST(Routes, LeadAroundLinksThatAreLost) {
  Routes routes(Topology::regular(2), 0, 8);
  EXPECT_TRUE(routes.lose_link(2, 1));
  EXPECT_FALSE(routes.lose_link(2, 1));
  EXPECT_FALSE(routes.has_said_lost(1, 2));
  EXPECT_TRUE(routes.lose_link(1, 2)) << "the other end says it, too";
  EXPECT_TRUE(routes.has_said_lost(1, 2));
  EXPECT_EQ(routes.changes(), 1U);
  EXPECT_EQ(routes.hop_to(1), 1U);
  EXPECT_EQ(routes.hop_to(2), 7U) << "both ends may live";
  EXPECT_TRUE(routes.reaches(2));
  EXPECT_TRUE(routes.lose_link(0, 7));
  EXPECT_FALSE(routes.reaches(2));
  EXPECT_TRUE(routes.reaches(0));
  EXPECT_EQ(routes.changes(), 2U);
  const std::vector<std::uint32_t> members = {0, 1, 2, 3};
  EXPECT_TRUE(routes.adopt(1, members));
  EXPECT_EQ(routes.hop_to(2), 3U) << "a link stays lost";
}

TEST(Routes, OnlyLinksOfTheFirstGraphAndOfThisOneCanBeLost) {
  Routes routes(Topology::regular(2), 0, 6);
  EXPECT_FALSE(routes.lose_link(0, 2));
  EXPECT_FALSE(routes.lose_link(4, 4));
  EXPECT_FALSE(routes.has_said_lost(0, 2));
  EXPECT_EQ(routes.changes(), 0U);
  routes.exclude(1);
  const std::vector<std::uint32_t> members = {0, 2, 3, 4, 5};
  ASSERT_TRUE(routes.adopt(1, members));
  EXPECT_TRUE(routes.lose_link(0, 2)) << "they are neighbours now";
  EXPECT_TRUE(routes.lose_link(1, 2)) << "they were";
  EXPECT_FALSE(routes.lose_link(0, 3));
}

TEST(Routes, AShrunkWorldHasAGraphOfItsOwn) {
  Routes routes(Topology::regular(2), 0, 6);
  routes.exclude(1);
  routes.exclude(5);
  EXPECT_EQ(routes.hop_to(3), kNoRank);
  const std::vector<std::uint32_t> members = {0, 2, 3, 4};
  EXPECT_TRUE(routes.adopt(1, members));
  EXPECT_FALSE(routes.adopt(1, members));
  EXPECT_EQ(routes.neighbours(), (std::vector<std::uint32_t>{2, 4}));
  EXPECT_EQ(routes.hop_to(3), 2U);
  EXPECT_EQ(routes.hop_to(1), kNoRank);
  EXPECT_EQ(routes.changes(), 3U);
}

/// Each rank knows what the rank before it on the way knew, and maybe more.
TEST(Routes, FramesGoInNoCircleWhileRanksLearn) {
  base::Rng rng(11);
  for (int trial = 0; trial < 500; ++trial) {
    const auto size = static_cast<std::uint32_t>(3 + rng.below(20));
    std::vector<Routes> all;
    for (std::uint32_t rank = 0; rank < size; ++rank) all.emplace_back(Topology::hypercube(), rank, size);
    const auto to = static_cast<std::uint32_t>(rng.below(size));
    auto at = static_cast<std::uint32_t>(rng.below(size));
    std::uint64_t hops = 0;
    while (at != to && at != kNoRank) {
      ASSERT_LE(hops, all[at].hops_max());
      if (rng.chance(0.3)) {
        const auto dead = static_cast<std::uint32_t>(rng.below(size));
        if (dead != to && dead != at) all[at].exclude(dead);
      }
      if (rng.chance(0.3)) {
        const auto one = static_cast<std::uint32_t>(rng.below(size));
        const std::vector<std::uint32_t>& others = all[one].neighbours();
        all[at].lose_link(one, others[rng.below(others.size())]);
      }
      const std::uint32_t next = all[at].hop_to(to);
      if (next == kNoRank) break;
      for (const std::uint32_t dead : all[at].gone()) {
        if (dead != next) all[next].exclude(dead);
      }
      for (const auto& [one, other] : all[at].lost_links()) all[next].lose_link(one, other);
      if (all[next].is_gone(next)) break;
      at = next;
      ++hops;
    }
  }
}

}  // namespace
}  // namespace hawser::runtime
