#include "agent/grant_book.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;

class GrantBookTest : public testing::Test {
 protected:
  GrantBookTest() { assume_in_lane(); }

  static std::shared_ptr<LocalRegion> region(std::uint32_t index, std::uint32_t generation = 1) {
    auto entry = std::make_shared<backend::RegionEntry>();
    entry->index = index;
    entry->generation = generation;
    entry->name = "r" + std::to_string(index);
    return std::make_shared<LocalRegion>(std::shared_ptr<Core>(), std::move(entry), false);
  }
  std::shared_ptr<LocalRegion> add(std::uint32_t index, Instant expires = Instant::max()) HAWSER_REQUIRES(in_lane) {
    EXPECT_TRUE(book_.begin(*parent_).ok());
    auto grant = region(index);
    EXPECT_TRUE(book_.add(parent_, grant, expires));
    return grant;
  }
  static Instant at(int ms) { return Instant() + milliseconds(ms); }

  GrantBook book_{3};
  const std::shared_ptr<LocalRegion> parent_ = region(0);
};

TEST_F(GrantBookTest, KnowsTheGrantsOfEachRegion) {
  assume_in_lane();
  const auto first = add(1), second = add(2);
  const auto other = region(7);
  EXPECT_EQ(book_.of(*parent_), (GrantBook::Grants{first, second}));
  EXPECT_TRUE(book_.of(*other).empty());
  EXPECT_EQ(parent_->grants, 2u);
  EXPECT_EQ(first->parent, parent_);
  EXPECT_EQ(book_.find({1, 1}), first);
  EXPECT_EQ(book_.find({1, 2}), nullptr) << "an index that is used again";
  book_.remove(*first);
  book_.remove(*first);
  book_.remove(*other);
  EXPECT_EQ(book_.of(*parent_), GrantBook::Grants{second});
  EXPECT_EQ(book_.find({1, 1}), nullptr);
  EXPECT_EQ(parent_->grants, 1u);
}

TEST_F(GrantBookTest, IsFullAtItsLimitWithThoseThatAreBeingMade) {
  assume_in_lane();
  const auto first = add(1);
  add(2);
  ASSERT_TRUE(book_.begin(*parent_).ok());
  const Status full = book_.begin(*parent_);
  EXPECT_EQ(full.code(), Code::kBusy);
  EXPECT_NE(full.message().find("limits.grants = 3"), std::string_view::npos);
  EXPECT_EQ(parent_->grants, 3u);
  book_.give_up(*parent_);
  EXPECT_TRUE(book_.begin(*parent_).ok());
  book_.remove(*first);
  EXPECT_TRUE(book_.begin(*parent_).ok());
  EXPECT_EQ(book_.begin(*parent_).code(), Code::kBusy);
  EXPECT_EQ(book_.count(), 3u);
}

TEST_F(GrantBookTest, GivesEachExpiredOneOnce) {
  assume_in_lane();
  EXPECT_EQ(book_.next_expiry(), Instant::max());
  const auto late = add(1, at(20)), soon = add(2, at(10));
  add(3);
  EXPECT_EQ(book_.next_expiry(), at(10));
  EXPECT_TRUE(book_.take_expired(at(9)).empty());
  EXPECT_EQ(book_.take_expired(at(10)), GrantBook::Grants{soon});
  EXPECT_TRUE(book_.take_expired(at(10)).empty());
  EXPECT_EQ(book_.find({2, 1}), soon) << "until it is closed";
  EXPECT_EQ(book_.next_expiry(), at(20));
  book_.remove(*late);
  EXPECT_EQ(book_.next_expiry(), Instant::max());
}

TEST_F(GrantBookTest, NothingIsGrantedOfARegionThatCloses) {
  assume_in_lane();
  ASSERT_TRUE(book_.begin(*parent_).ok());
  parent_->state = RegionState::kClosing;
  EXPECT_EQ(book_.begin(*parent_).code(), Code::kInvalid);
  const auto made = region(1);
  EXPECT_FALSE(book_.add(parent_, made, Instant::max())) << "for the caller to drop";
  EXPECT_EQ(parent_->grants, 1u) << "until it is dropped";
  book_.remove(*made);
  EXPECT_EQ(parent_->grants, 0u);
}

TEST_F(GrantBookTest, AGrantThatWasClosedWhileItWasMadeLeavesNothing) {
  assume_in_lane();
  ASSERT_TRUE(book_.begin(*parent_).ok());
  const auto made = region(1);
  made->state = RegionState::kClosed;
  EXPECT_FALSE(book_.add(parent_, made, Instant::max()));
  EXPECT_EQ(parent_->grants, 0u);
  EXPECT_EQ(book_.count(), 0u);
}

}  // namespace
}  // namespace hawser::agent
