#include "worldsim/settings.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/graph.h"

namespace hawser::worldsim {
namespace {

Settings settings_of(std::uint64_t seed, sim::Mode mode) {
  base::Rng rng(seed);
  return draw_settings(rng, seed, mode);
}

std::size_t count_sparse(sim::Mode mode, std::uint64_t seeds) {
  std::size_t count = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) count += is_sparse(settings_of(seed, mode)) ? 1 : 0;
  return count;
}

TEST(SettingsTest, AShareOfTheSeedsIsSparse) {
  EXPECT_EQ(count_sparse(sim::Mode::kStream, 960), 240U);
  EXPECT_EQ(count_sparse(sim::Mode::kMapped, 960), 160U);
}

TEST(SettingsTest, AnEighthOfTheSeedsHasGuestsAndNoneOfThemIsSparse) {
  for (const sim::Mode mode : {sim::Mode::kStream, sim::Mode::kMapped}) {
    std::set<std::uint64_t> kinds;
    std::size_t count = 0;
    for (std::uint64_t seed = 0; seed < 1024; ++seed) {
      const Settings settings = settings_of(seed, mode);
      if (!settings.guests) continue;
      ++count;
      kinds.insert(seed % 16);
      EXPECT_FALSE(is_sparse(settings) || settings.parts) << describe(settings);
      EXPECT_LE(settings.hosts, settings.ranks);
    }
    EXPECT_EQ(count, 128U);
    EXPECT_EQ(kinds.size(), 16U);
  }
}

TEST(SettingsTest, TopologiesCanBeAndAreOfAllKinds) {
  std::set<Topology::Kind> kinds;
  bool has_far_ranks = false;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const Settings settings = settings_of(seed, sim::Mode::kStream);
    if (!is_sparse(settings)) {
      EXPECT_LE(settings.ranks, 8U);
      continue;
    }
    const auto ranks = static_cast<std::uint32_t>(settings.ranks);
    EXPECT_TRUE(runtime::check_topology(settings.topology, ranks).ok()) << describe(settings);
    EXPECT_NE(describe(settings).find("topology " + to_string(settings.topology)), std::string::npos);
    kinds.insert(settings.topology.kind);
    has_far_ranks = has_far_ranks || ranks > 8;
  }
  EXPECT_EQ(kinds.size(), 3U);
  EXPECT_TRUE(has_far_ranks);
}

TEST(SettingsTest, SparseWorldsHaveAllThatSeedsDifferBy) {
  std::set<std::uint64_t> kinds;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    if (is_sparse(settings_of(seed, sim::Mode::kStream))) kinds.insert(seed % 16);
  }
  EXPECT_EQ(kinds.size(), 16U);
}

}  // namespace
}  // namespace hawser::worldsim
