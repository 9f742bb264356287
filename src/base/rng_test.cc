#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace hawser::base {
namespace {

// Golden values: a change breaks every recorded seed.
TEST(Rng, GivesTheSameNumbersEverywhere) {
  Rng rng(0);
  EXPECT_EQ(rng.u64(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(rng.u64(), 0xbf6e1f784956452au);
  EXPECT_EQ(rng.u64(), 0x1a5f849d4933e6e0u);
}

TEST(Rng, StaysInBounds) {
  Rng rng(42);
  std::vector<int> hits(7);
  for (int i = 0; i < 70'000; ++i) ++hits[rng.below(7)];
  for (const int count : hits) EXPECT_NEAR(count, 10'000, 500);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = rng.range(-3, 3);
    EXPECT_GE(value, -3);
    EXPECT_LE(value, 3);
    EXPECT_LT(rng.unit(), 1.0);
  }
  EXPECT_EQ(rng.range(5, 5), 5);
  EXPECT_EQ(rng.below(1), 0u);
  rng.range(INT64_MIN, INT64_MAX);
  EXPECT_FALSE(rng.chance(0));
  EXPECT_TRUE(rng.chance(1));
}

TEST(Rng, ForksAndShuffles) {
  Rng a(1);
  Rng b(1);
  Rng fork = a.fork();
  EXPECT_NE(fork.u64(), Rng(b).u64());
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> shuffled = items;
  a.shuffle(shuffled);
  EXPECT_NE(shuffled, items);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, items);
}

}  // namespace
}  // namespace hawser::base
