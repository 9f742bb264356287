#include "backend/verbs/path/number_cache.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace hawser::backend::verbs {
namespace {

struct NumberedPath {
  bool has_number(std::uint32_t lane, std::uint32_t number) const {
    ++asked;
    return numbers.contains({lane, number});
  }
  std::set<std::pair<std::uint32_t, std::uint32_t>> numbers;
  mutable int asked = 0;
};

struct NumberCacheTest : ::testing::Test {
  NumberedPath& add(std::set<std::pair<std::uint32_t, std::uint32_t>> numbers) {
    paths.push_back(std::make_unique<NumberedPath>());
    paths.back()->numbers = std::move(numbers);
    return *paths.back();
  }
  NumberedPath* find(std::uint32_t lane, std::uint32_t number) { return cache.find(lane, number, paths); }

  NumberCache<NumberedPath> cache;
  std::vector<std::unique_ptr<NumberedPath>> paths;
};

TEST_F(NumberCacheTest, FindsThePathThatHasTheNumber) {
  NumberedPath& one = add({{0, 7}});
  NumberedPath& two = add({{1, 7}, {0, 8}});
  EXPECT_EQ(find(0, 7), &one);
  EXPECT_EQ(find(1, 7), &two) << "numbers are the device's";
  EXPECT_EQ(find(0, 8), &two);
  EXPECT_EQ(find(0, 9), nullptr);
}

TEST_F(NumberCacheTest, DoesNotGoThroughAllPathsForWhatIsKnown) {
  NumberedPath& other = add({{0, 1}});
  add({{0, 7}});
  add({{0, 8}});
  find(0, 7);
  find(0, 8);
  other.asked = 0;
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(find(0, 7), nullptr);
    EXPECT_NE(find(0, 8), nullptr);
  }
  EXPECT_EQ(other.asked, 0);
}

TEST_F(NumberCacheTest, ANumberThatMovedToAnotherPathIsFoundThere) {
  NumberedPath& one = add({{0, 7}});
  NumberedPath& two = add({});
  EXPECT_EQ(find(0, 7), &one);
  one.numbers.clear();
  EXPECT_EQ(find(0, 7), nullptr);
  two.numbers.insert({0, 7});
  EXPECT_EQ(find(0, 7), &two);
}

TEST_F(NumberCacheTest, APathThatGoesIsForgotten) {
  add({{0, 7}, {0, 8}});
  EXPECT_NE(find(0, 7), nullptr);
  EXPECT_NE(find(0, 8), nullptr);
  cache.forget(paths.front().get());
  paths.clear();
  EXPECT_EQ(find(0, 8), nullptr);
  EXPECT_EQ(find(0, 7), nullptr);
}

}  // namespace
}  // namespace hawser::backend::verbs
