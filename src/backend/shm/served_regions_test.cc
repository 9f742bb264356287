#include "backend/shm/served_regions.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::backend::shm {
namespace {

class ServedRegionsTest : public ::testing::Test {
 protected:
  ServedRegions served_;
  const std::array<int, 2> paths_{};
  const ServedRegions::Path one_ = paths_.data(), other_ = paths_.data() + 1;
};

TEST_F(ServedRegionsTest, KnowsWhoWasTold) {
  EXPECT_FALSE(served_.of({3, 1}).is_any);
  served_.note({3, 1}, one_);
  EXPECT_TRUE(served_.of({3, 1}).is_any);
  EXPECT_EQ(served_.of({3, 1}).only, one_);
  EXPECT_FALSE(served_.of({2, 1}).is_any);
  EXPECT_FALSE(served_.of({4, 1}).is_any);
  served_.note({3, 1}, one_);
  EXPECT_EQ(served_.of({3, 1}).only, one_) << "asked twice";
  served_.note({3, 1}, other_);
  EXPECT_TRUE(served_.of({3, 1}).is_any);
  EXPECT_EQ(served_.of({3, 1}).only, nullptr) << "several";
  served_.note({3, 1}, one_);
  EXPECT_EQ(served_.of({3, 1}).only, nullptr);
}

TEST_F(ServedRegionsTest, ALaterRegionOfTheSameIndexIsAnother) {
  served_.note({3, 1}, one_);
  served_.note({3, 1}, other_);
  EXPECT_FALSE(served_.of({3, 2}).is_any);
  served_.note({3, 2}, other_);
  EXPECT_EQ(served_.of({3, 2}).only, other_);
  EXPECT_FALSE(served_.of({3, 1}).is_any);
}

TEST_F(ServedRegionsTest, APathThatIsGoneIsNotLookedAt) {
  served_.note({0, 1}, one_);
  served_.note({1, 1}, other_);
  served_.note({2, 1}, one_);
  served_.note({2, 1}, other_);
  served_.forget(one_);
  EXPECT_FALSE(served_.of({0, 1}).is_any);
  EXPECT_EQ(served_.of({1, 1}).only, other_);
  EXPECT_TRUE(served_.of({2, 1}).is_any);
  served_.forget(other_);
  EXPECT_TRUE(served_.of({2, 1}).is_any) << "of several it is not known which";
  EXPECT_EQ(served_.of({2, 1}).only, nullptr);
}

}  // namespace
}  // namespace hawser::backend::shm
