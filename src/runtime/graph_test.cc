#include "runtime/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

namespace hawser::runtime {
namespace {

constexpr std::uint32_t kSizeMax = 65;

std::vector<Topology> topologies_for(std::uint32_t size) {
  std::vector<Topology> all = {Topology(), Topology::hypercube()};
  for (const std::uint32_t degree : {2U, 4U, 6U}) {
    if (degree < size) all.push_back(Topology::regular(degree));
  }
  std::vector<Topology::Edge> star, line;
  for (std::uint32_t rank = 1; rank < size; ++rank) {
    star.emplace_back(rank, 0);
    line.emplace_back(rank - 1, rank);
  }
  all.push_back(Topology::of_edges(star));
  all.push_back(Topology::of_edges(line));
  return all;
}

/// How many hops lead from one to the other, each by the rule of the rank where the message is. Size: a circle.
std::uint32_t hops_between(const Graph& graph, std::uint32_t from, std::uint32_t to,
                           const std::set<std::uint32_t>& gone) {
  std::uint32_t hops = 0;
  for (std::uint32_t at = from; at != to; ++hops) {
    if (hops == graph.size()) return hops;
    at = graph.next_hops(at, gone)[to];
    if (at == kNoRank || gone.contains(at)) return graph.size();
  }
  return hops;
}

TEST(Graph, EveryRankReachesEveryOtherWithoutCircles) {
  for (std::uint32_t size = 1; size <= kSizeMax; ++size) {
    for (const Topology& topology : topologies_for(size)) {
      ASSERT_TRUE(check_topology(topology, size).ok()) << to_string(topology) << " of " << size;
      const Graph graph(topology, size);
      const std::vector<std::uint32_t> hops = graph.next_hops(size / 2, {});
      for (std::uint32_t to = 0; to < size; ++to) {
        ASSERT_EQ(hops[to] == kNoRank, to == size / 2);
        ASSERT_LT(hops_between(graph, size / 2, to, {}), size) << to_string(topology) << " of " << size << " to " << to;
      }
    }
  }
}

TEST(Graph, DegreesAndDistances) {
  for (std::uint32_t size = 1; size <= kSizeMax; ++size) {
    const Graph cube(Topology::hypercube(), size);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      for (const std::uint32_t other : cube.neighbours(rank)) {
        ASSERT_EQ(std::popcount(rank ^ other), 1);
        ASSERT_TRUE(cube.has_edge(other, rank));
      }
      const std::uint32_t bits = std::bit_width(size - 1);
      ASSERT_LE(hops_between(cube, rank, 0, {}), bits);
    }
    for (std::uint32_t degree = 2; degree < size; degree += 2) {
      const Graph ring(Topology::regular(degree), size);
      for (std::uint32_t rank = 0; rank < size; ++rank) ASSERT_EQ(ring.neighbours(rank).size(), degree);
      const std::uint32_t far = size / 2;
      ASSERT_EQ(hops_between(ring, 0, far, {}), (far + degree / 2 - 1) / (degree / 2)) << degree << " of " << size;
    }
  }
}

TEST(Graph, AvoidsThoseThatAreGone) {
  for (std::uint32_t size = 3; size <= 33; ++size) {
    for (const Topology& topology : {Topology::regular(2), Topology::hypercube()}) {
      const Graph graph(topology, size);
      for (std::uint32_t dead = 0; dead < size; ++dead) {
        const std::uint32_t from = dead == 0 ? 1 : 0;
        const std::vector<std::uint32_t> hops = graph.next_hops(from, {dead});
        for (std::uint32_t to = 0; to < size; ++to) {
          if (to == from) continue;
          if (to == dead) {
            ASSERT_EQ(hops[to], kNoRank);
          } else if (topology.kind == Topology::Kind::kRegular) {
            ASSERT_LT(hops_between(graph, from, to, {dead}), size);
          } else if (hops[to] != kNoRank) {  // A cube that is not whole may fall apart.
            ASSERT_LT(hops_between(graph, from, to, {dead}), size);
          }
        }
      }
    }
  }
}

TEST(Graph, ARingFallsApartByTwo) {
  const Graph ring(Topology::regular(2), 6);
  const std::vector<std::uint32_t> hops = ring.next_hops(0, {2, 5});
  EXPECT_EQ(hops, (std::vector<std::uint32_t>{kNoRank, 1, kNoRank, kNoRank, kNoRank, kNoRank}));
}

TEST(Graph, OfMembersItIsMadeAnew) {
  const std::vector<std::uint32_t> members = {1, 2, 5, 7, 8};
  const Graph ring(Topology::regular(2), 9, members);
  EXPECT_EQ(ring.neighbours(1), (std::vector<std::uint32_t>{2, 8}));
  EXPECT_EQ(ring.neighbours(5), (std::vector<std::uint32_t>{2, 7}));
  EXPECT_TRUE(ring.neighbours(0).empty());
  const Graph wide(Topology::regular(6), 9, members);
  EXPECT_EQ(wide.neighbours(1), (std::vector<std::uint32_t>{2, 5, 7, 8})) << "there are no more";
  const Graph cube(Topology::hypercube(), 9, members);
  EXPECT_EQ(cube.neighbours(8), (std::vector<std::uint32_t>{1})) << "the fifth is beside the first";
  const Graph line(Topology::of_edges({{0, 1}, {1, 2}, {2, 3}, {3, 4}}), 5, std::vector<std::uint32_t>{0, 1, 3, 4});
  EXPECT_EQ(line.neighbours(0), (std::vector<std::uint32_t>{1, 3})) << "the parts were joined";
}

TEST(Graph, BadTopologiesAreToldOf) {
  const auto why = [](const Topology& topology, std::uint32_t size) {
    const Status status = check_topology(topology, size);
    EXPECT_EQ(status.code(), Code::kInvalid) << to_string(topology);
    return std::string(status.message());
  };
  EXPECT_NE(why(Topology::regular(3), 8).find("even"), std::string::npos);
  EXPECT_NE(why(Topology::regular(0), 8).find("two neighbours"), std::string::npos);
  EXPECT_NE(why(Topology::regular(8), 8).find("7 others"), std::string::npos);
  EXPECT_NE(why(Topology::of_edges({{0, 1}, {1, 4}}), 4).find("out of the world"), std::string::npos);
  EXPECT_NE(why(Topology::of_edges({{0, 1}, {1, 1}}), 2).find("itself"), std::string::npos);
  EXPECT_NE(why(Topology::of_edges({{0, 1}, {2, 3}}), 4).find("to rank 2"), std::string::npos);
  EXPECT_TRUE(check_topology(Topology::of_edges({}), 1).ok());
}

}  // namespace
}  // namespace hawser::runtime
