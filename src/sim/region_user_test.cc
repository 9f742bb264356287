#include "sim/region_user.h"

#include <algorithm>

#include "sim/test_users.h"

namespace hawser::simulation {
namespace {

using RegionUserTest = TwoUsersTest;

TEST_F(RegionUserTest, OpensRegionsUpToABound) {
  RegionUser user(theater, rng);
  const std::size_t before = a.areas.size();
  user.open_one(a);
  EXPECT_EQ(a.areas.size(), before + 1);
  for (int i = 0; i < 50; ++i) user.open_one(a);
  EXPECT_EQ(a.areas.size(), 16u);
}

TEST_F(RegionUserTest, WhatAllWordsLieInStays) {
  RegionUser user(theater, rng);
  for (int i = 0; i < 50; ++i) {
    user.close_one(a);
    run(5);
  }
  EXPECT_FALSE(a.words->closing);
  EXPECT_FALSE(a.own_words->closing);
  EXPECT_FALSE(a.scratch->closing) << "another is there at once";
  EXPECT_TRUE(std::ranges::any_of(a.areas, [](const auto& area) {
    return !area->atomic_words.empty() && !area->closed;
  })) << "atomics have a region always";
}

}  // namespace
}  // namespace hawser::simulation
