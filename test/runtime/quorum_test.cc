// Which ranks may go on without the others.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "../must.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

std::vector<World> majority_world(std::uint32_t size, const std::string& topology) {
  WorldOptions options;
  options.timeout = 20s;
  options.quorum = Quorum::kMajority;
  options.topology = must(parse_topology(topology));
  return must(World::local(size, options));
}

/// By rank, of those that call it.
std::vector<Result<World>> shrink(std::vector<World*> worlds, const std::vector<std::uint32_t>& without = {}) {
  std::vector<Request> requests;
  for (World* const world : worlds) requests.push_back(world->ishrink(without));
  std::vector<Result<World>> made;
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    const Status status = requests[i].wait(20s);
    made.push_back(status.ok() ? worlds[i]->shrunk(requests[i]) : Result<World>(status));
  }
  return made;
}

void expect_no_quorum(const Result<World>& made) {
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), Code::kDenied) << made.error().to_string();
  EXPECT_NE(made.error().to_string().find("has no quorum"), std::string::npos) << made.error().to_string();
}

/// In full and in sparse worlds.
class Quorums : public testing::TestWithParam<std::string> {
 protected:
  std::vector<World> open(std::uint32_t size) const { return majority_world(size, GetParam()); }
};

TEST_P(Quorums, HalfOfTheRanksIsNoneOneMoreIs) {
  const bool is_ring = GetParam().starts_with("edges");
  for (const std::uint32_t size : {2U, 3U, 4U, 5U}) {
    if (is_ring && size < 5) continue;  // Its edges are of five ranks.
    for (std::uint32_t left = 1; left < size; ++left) {
      std::vector<World> worlds = open(size);
      std::vector<World*> callers;
      std::vector<std::uint32_t> without;
      for (std::uint32_t rank = 0; rank < left; ++rank) callers.push_back(&worlds[rank]);
      for (std::uint32_t rank = left; rank < size; ++rank) without.push_back(rank);
      const std::vector<Result<World>> made = shrink(callers, without);
      for (const Result<World>& each : made) {
        if (2 * left <= size) {
          expect_no_quorum(each);
        } else {
          ASSERT_TRUE(each.has_value()) << each.error().to_string();
          EXPECT_EQ(each->size(), left);
        }
      }
      if (2 * left > size) continue;
      for (World& world : worlds) EXPECT_TRUE(world.failed().empty()) << "who is refused harms nobody";
      std::vector<Request> barriers;
      for (World& world : worlds) barriers.push_back(world.ibarrier());
      for (Request& barrier : barriers) EXPECT_TRUE(barrier.wait(20s).ok()) << barrier.status().to_string();
    }
  }
}

TEST_P(Quorums, WhoIsProvenDeadOrHasLeftDoesNotCount) {
  for (const bool leaves : {false, true}) {
    std::vector<World> worlds = open(5);
    for (std::uint32_t rank = 2; rank < 5; ++rank)
      EXPECT_TRUE((leaves ? worlds[rank].leave(5s) : worlds[rank].close(5s)).ok());
    const std::vector<Result<World>> made = shrink({&worlds[0], &worlds[1]});
    for (const Result<World>& each : made) {
      ASSERT_TRUE(each.has_value()) << each.error().to_string();
      EXPECT_EQ(each->size(), 2U);
    }
  }
}

TEST_P(Quorums, ItHoldsInTheNewWorldToo) {
  std::vector<World> worlds = open(5);
  EXPECT_TRUE(worlds[4].close(5s).ok());
  std::vector<Result<World>> four = shrink({&worlds[0], &worlds[1], &worlds[2], &worlds[3]});
  for (const Result<World>& each : four) ASSERT_TRUE(each.has_value()) << each.error().to_string();
  for (const Result<World>& each : shrink({&*four[0], &*four[1]}, {2, 3})) expect_no_quorum(each);
  for (const Result<World>& each : shrink({&*four[0], &*four[1], &*four[2]}, {3})) ASSERT_TRUE(each.has_value());
}

INSTANTIATE_TEST_SUITE_P(Topologies, Quorums, testing::Values("full", "hypercube", "edges:0-1,1-2,2-3,3-4,4-0"),
                         [](const auto& one) { return one.param.substr(0, 4); });

TEST(Quorum, WithoutOneAnyRanksGoOn) {
  std::vector<World> worlds = must(World::local(4));
  for (const Result<World>& each : shrink({&worlds[0]}, {1, 2, 3})) ASSERT_TRUE(each.has_value());
}

}  // namespace
}  // namespace hawser
