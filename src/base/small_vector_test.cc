#include "base/small_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <utility>

namespace hawser::base {
namespace {

using Numbers = SmallVector<std::unique_ptr<int>, 2>;

Numbers numbers(int count) {
  Numbers made;
  for (int i = 0; i < count; ++i) made.push_back(std::make_unique<int>(i));
  return made;
}

int sum(const Numbers& all) {
  return std::accumulate(all.begin(), all.end(), 0, [](int total, const auto& each) { return total + *each; });
}

TEST(SmallVector, HoldsAFewInsideAndManyOutside) {
  for (int count = 0; count < 20; ++count) {
    const Numbers all = numbers(count);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(all.empty(), count == 0);
    EXPECT_EQ(sum(all), count * (count - 1) / 2);
    const auto* const object = reinterpret_cast<const std::byte*>(&all);
    const auto* const first = reinterpret_cast<const std::byte*>(all.data());
    EXPECT_EQ(first >= object && first < object + sizeof all, count <= 2);
  }
}

TEST(SmallVector, GivesAllAwayWhenItIsMoved) {
  for (const int from : {0, 1, 2, 3, 9}) {
    for (const int to : {0, 1, 2, 3, 9}) {
      Numbers source = numbers(from), target = numbers(to);
      target = std::move(source);
      EXPECT_EQ(sum(target), from * (from - 1) / 2);
      EXPECT_TRUE(source.empty());  // NOLINT(bugprone-use-after-move): it is good to be used again.
      source.push_back(std::make_unique<int>(7));
      EXPECT_EQ(*source.back(), 7);
      const Numbers made(std::move(target));
      EXPECT_EQ(sum(made), from * (from - 1) / 2);
    }
  }
}

TEST(SmallVector, KeepsPlacesWithinItsRoom) {
  SmallVector<int, 1> all;
  all.reserve(100);
  all.push_back(1);
  const int* const first = all.data();
  for (int i = 1; i < 100; ++i) all.push_back(i + 1);
  EXPECT_EQ(all.data(), first);
  EXPECT_EQ(all.front(), 1);
  EXPECT_EQ(all.back(), 100);
  all.clear();
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.capacity(), 100u);
}

TEST(SmallVector, EndsWhatItHolds) {
  const auto counted = std::make_shared<int>(0);
  {
    SmallVector<std::shared_ptr<int>, 2> all;
    for (int i = 0; i < 5; ++i) all.push_back(counted);
    EXPECT_EQ(counted.use_count(), 6);
    SmallVector<std::shared_ptr<int>, 2> other;
    other.push_back(counted);
    other = std::move(all);
    EXPECT_EQ(counted.use_count(), 6);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

}  // namespace
}  // namespace hawser::base
