#include "agent/region_book.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::agent {
namespace {

std::shared_ptr<LocalRegion> make_region(std::uint32_t index, std::uint32_t generation) {
  auto entry = std::make_shared<backend::RegionEntry>();
  entry->index = index;
  entry->generation = generation;
  return std::make_shared<LocalRegion>(std::shared_ptr<Core>(), std::move(entry), false);
}

class RegionBookTest : public testing::Test {
 protected:
  void SetUp() override {
    assume_in_lane();
    for (const auto& region : {second_, first_}) book_.add(region);
  }
  void close(const LocalRegion& region) {
    assume_in_lane();
    book_.close(std::array{id_of(region)});
  }
  void remove(const LocalRegion& region) {
    assume_in_lane();
    book_.remove(std::array{id_of(region)});
  }
  static backend::RegionId id_of(const LocalRegion& region) { return {region.entry->index, region.entry->generation}; }
  std::shared_ptr<LocalRegion> first_ = make_region(0, 1), second_ = make_region(2, 1);
  RegionBook book_;
};

TEST_F(RegionBookTest, TellsThemByIndex) {
  EXPECT_EQ(book_.all(), (RegionBook::Regions{first_, second_}));
  EXPECT_EQ(book_.open(), (RegionBook::Regions{first_, second_}));
  EXPECT_EQ(book_.open_entries(), (RegionBook::Entries{first_->entry, second_->entry}));
}

TEST_F(RegionBookTest, OneThatIsBeingClosedIsThereButNotOpen) {
  close(*first_);
  EXPECT_EQ(book_.all(), (RegionBook::Regions{first_, second_}));
  EXPECT_EQ(book_.open(), RegionBook::Regions{second_});
  EXPECT_EQ(book_.open_entries(), RegionBook::Entries{second_->entry});
  remove(*first_);
  EXPECT_EQ(book_.all(), RegionBook::Regions{second_});
}

TEST_F(RegionBookTest, AnEarlierGenerationDoesNotReachTheLaterOne) {
  remove(*first_);
  const auto later = make_region(0, 2);
  assume_in_lane();
  book_.add(later);
  close(*first_);
  remove(*first_);
  EXPECT_EQ(book_.open(), (RegionBook::Regions{later, second_}));
}

TEST_F(RegionBookTest, KeepsNoRegionAlive) {
  const std::weak_ptr<LocalRegion> watched = first_;
  first_.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(book_.all(), RegionBook::Regions{second_});
  EXPECT_EQ(book_.open_entries().size(), 2u) << "peers know it until it is closed";
}

}  // namespace
}  // namespace hawser::agent
