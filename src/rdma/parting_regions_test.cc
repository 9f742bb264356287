#include "rdma/parting_regions.h"

#include <gtest/gtest.h>

#include <vector>

#include "agent/open.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

class PartingRegionsTest : public ::testing::Test {
 protected:
  Region open_region() { return agent_.add_region({.name = "some", .bytes = memory_}).value(); }
  /// The handle of no region never closes.
  static Region stuck_region() { return Region(); }
  static Instant past() { return Clock::steady().now(); }

  std::vector<std::byte> memory_ = std::vector<std::byte>(64);
  Agent agent_ = std::move(agent::open_with({.name = "a"}, {}).value());
  int woken_ = 0;
  std::shared_ptr<PartingRegions> parting_ = std::make_shared<PartingRegions>([this] { ++woken_; });
  std::shared_ptr<int> owner_ = std::make_shared<int>();
  std::weak_ptr<int> kept_ = owner_;
};

TEST_F(PartingRegionsTest, ARegionThatClosesAtOnceIsNotKept) {
  Region region = open_region();
  part(region, parting_, std::move(owner_));
  EXPECT_TRUE(kept_.expired());
  EXPECT_TRUE(parting_->empty());
  EXPECT_EQ(woken_, 0);
}

TEST_F(PartingRegionsTest, OneThatDoesNotCloseKeepsItsOwnerAndWakesWhoLooks) {
  Region stuck = stuck_region();
  part(stuck, parting_, std::move(owner_));
  EXPECT_FALSE(kept_.expired());
  EXPECT_EQ(woken_, 1);
  EXPECT_FALSE(parting_->look());
  EXPECT_FALSE(parting_->empty());
}

TEST_F(PartingRegionsTest, ALookLetsGoOfThoseThatHaveClosed) {
  Region region = open_region(), stuck = stuck_region();
  ASSERT_TRUE(parting_->take(region, std::move(owner_)));
  ASSERT_TRUE(parting_->take(stuck, {}));
  EXPECT_TRUE(parting_->look());
  EXPECT_TRUE(kept_.expired());
  EXPECT_FALSE(parting_->look());
  EXPECT_FALSE(parting_->empty());
}

TEST_F(PartingRegionsTest, TheEndClosesWhatItCanAndTakesNoMore) {
  Region region = open_region(), stuck = stuck_region(), late = stuck_region();
  ASSERT_TRUE(parting_->take(region, std::move(owner_)));
  ASSERT_TRUE(parting_->take(stuck, {}));
  parting_->end(past());
  EXPECT_TRUE(kept_.expired());
  EXPECT_TRUE(parting_->empty());
  EXPECT_EQ(woken_, 2);
  EXPECT_FALSE(parting_->take(late, {}));
  EXPECT_EQ(woken_, 2);
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
