#include "worldsim/ways.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::worldsim {
namespace {

TEST(WaysTest, AFullWorldHasAll) {
  Ways ways;
  ways.open({}, 4);
  EXPECT_FALSE(ways.is_sparse());
  ways.note_gone(1);
  EXPECT_FALSE(ways.were_apart());
  EXPECT_TRUE(ways.joins(0, 2, {1, 3}));
  EXPECT_TRUE(ways.are_neighbours(0, 2));
  EXPECT_FALSE(ways.leads_by(0, 2, 1));
}

TEST(WaysTest, AWayLeadsByRelays) {
  Ways ways;
  ways.open(Topology::regular(2), 6);
  EXPECT_TRUE(ways.is_sparse());
  EXPECT_TRUE(ways.are_neighbours(0, 5));
  EXPECT_FALSE(ways.are_neighbours(0, 2));
  EXPECT_TRUE(ways.leads_by(0, 2, 1));
  EXPECT_FALSE(ways.leads_by(0, 2, 4));
  EXPECT_FALSE(ways.leads_by(0, 1, 1));
  ways.note_gone(1);
  EXPECT_FALSE(ways.leads_by(0, 2, 1));
  EXPECT_TRUE(ways.leads_by(0, 2, 4));
}

TEST(WaysTest, ARingFallsApartByTwo) {
  Ways ways;
  ways.open(Topology::regular(2), 6);
  ways.note_gone(1);
  EXPECT_FALSE(ways.were_apart());
  EXPECT_TRUE(ways.joins(0, 3, {}));
  EXPECT_FALSE(ways.joins(0, 3, {4}));
  EXPECT_FALSE(ways.were_apart());
  ways.note_gone(4);
  EXPECT_TRUE(ways.were_apart());
  EXPECT_FALSE(ways.joins(0, 3, {}));
  EXPECT_TRUE(ways.joins(0, 5, {}));
}

TEST(WaysTest, NeighboursThatGoPartNobody) {
  Ways ways;
  ways.open(Topology::regular(2), 6);
  ways.note_gone(1);
  ways.note_gone(2);
  EXPECT_FALSE(ways.were_apart());
}

TEST(WaysTest, OfTwoThatLoseEachOtherTheHigherIsLeftOut) {
  Ways ways;
  ways.open(Topology::regular(2), 6);
  EXPECT_EQ(ways.note_lost(2, 3), (Ways::Ranks{3}));
  EXPECT_TRUE(ways.joins(2, 3, {}));
  EXPECT_FALSE(ways.joins(2, 3, {0}));
  EXPECT_TRUE(ways.leads_by(2, 3, 0));
  EXPECT_FALSE(ways.were_apart());
}

TEST(WaysTest, TheOneThatJoinsOthersStays) {
  Ways ways;
  ways.open(parse_topology("edges:0-1,1-2,2-3,3-0,3-4").value(), 5);
  EXPECT_EQ(ways.note_lost(0, 3), (Ways::Ranks{0}));
}

TEST(WaysTest, WhoIsNotJoinedAnyMoreIsLeftOutToo) {
  Ways ways;
  ways.open(parse_topology("edges:0-1,1-2,2-3,3-0,3-4,0-5").value(), 6);
  EXPECT_EQ(ways.note_lost(0, 3), (Ways::Ranks{3, 4}));
}

TEST(WaysTest, WithoutAWayRoundEachSideIsForItself) {
  Ways ways;
  ways.open(parse_topology("edges:0-1,1-2").value(), 3);
  EXPECT_TRUE(ways.note_lost(1, 2).empty());
  EXPECT_TRUE(ways.were_apart());
}

TEST(WaysTest, EachRankGoesByItsOwnGraph) {
  constexpr std::array<std::uint32_t, 5> kLeft = {0, 2, 3, 4, 5};
  const runtime::Graph smaller(Topology::regular(2), 6, kLeft);
  Ways ways;
  ways.open(Topology::regular(2), 6);
  ways.note_gone(1);
  for (const std::uint32_t rank : kLeft) ways.note_graph(rank, 1, smaller);
  EXPECT_EQ(ways.generation(0), 1U);
  EXPECT_EQ(ways.generation(1), 0U);
  EXPECT_TRUE(ways.are_neighbours(0, 2));
  ways.note_gone(4);
  EXPECT_FALSE(ways.were_apart());  // The ring was closed.
  ways.note_gone(2);
  EXPECT_TRUE(ways.were_apart());  // 3 is between the two.
}

TEST(WaysTest, ARankWithTheOldGraphMayBeApart) {
  constexpr std::array<std::uint32_t, 5> kLeft = {0, 2, 3, 4, 5};
  Ways ways;
  ways.open(Topology::regular(2), 6);
  ways.note_gone(1);
  for (const std::uint32_t rank : {2, 3, 4, 5}) {
    ways.note_graph(rank, 1, runtime::Graph(Topology::regular(2), 6, kLeft));
  }
  ways.note_gone(4);  // Rank 0 has only 5 by its own graph.
  EXPECT_TRUE(ways.were_apart());
}

}  // namespace
}  // namespace hawser::worldsim
