#include "agent/mapped_areas.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::agent {
namespace {

using Entry = MappedAreas::Entry;

class MappedAreasTest : public testing::Test {
 protected:
  Entry region(std::uint64_t at, std::uint64_t size, Rights rights = Rights::kReadWrite, bool listed = true) {
    auto made = std::make_shared<backend::RegionEntry>();
    made->base = arena_->bytes().data() + at;
    made->size = size;
    made->rights = rights;
    made->listed = listed;
    made->arena = arena_;
    return made;
  }
  std::span<const std::byte> bytes(std::uint64_t at, std::uint64_t size) const {
    return arena_->bytes().subspan(at, size);
  }
  std::shared_ptr<backend::Arena> arena_ = backend::Arena::create(1 << 20, Rights::kReadWrite, HugePages::kOff).value();
  MappedAreas areas_;
};

TEST_F(MappedAreasTest, FindsTheRegionThatHoldsAllOfTheBytes) {
  const Entry first = region(0, 1000), second = region(1000, 1000);
  areas_.add(first);
  areas_.add(second);
  EXPECT_EQ(areas_.find(bytes(0, 1000)), first);
  EXPECT_EQ(areas_.find(bytes(999, 1)), first);
  EXPECT_EQ(areas_.find(bytes(1000, 1000)), second);
  EXPECT_EQ(areas_.find(bytes(999, 2)), nullptr) << "it lies in two";
  EXPECT_EQ(areas_.find(bytes(1999, 2)), nullptr);
  EXPECT_EQ(areas_.find(bytes(5000, 1)), nullptr);
}

TEST_F(MappedAreasTest, ARegionThatIsGoneHoldsNothing) {
  const Entry one = region(64, 64);
  areas_.add(one);
  areas_.remove(*region(64, 64));
  EXPECT_EQ(areas_.find(bytes(64, 64)), one) << "another registration went";
  areas_.remove(*one);
  EXPECT_EQ(areas_.find(bytes(64, 64)), nullptr);
}

TEST_F(MappedAreasTest, OfOverlappingRegionsOneThatHoldsTheBytesIsFound) {
  const Entry large = region(0, 4096), inside = region(100, 100), head = region(0, 10);
  for (const Entry& each : {head, large, inside}) areas_.add(each);
  EXPECT_EQ(areas_.find(bytes(100, 100)), inside);
  EXPECT_EQ(areas_.find(bytes(100, 101)), large);
  EXPECT_EQ(areas_.find(bytes(0, 10)), large) << "of one address the largest";
}

TEST_F(MappedAreasTest, WhatPeersMayNotReadOrMapIsNone) {
  areas_.add(region(0, 100, Rights::kWrite));
  areas_.add(region(200, 100, Rights::kReadWrite, false));
  std::vector<std::byte> memory(100);
  auto plain = std::make_shared<backend::RegionEntry>();
  plain->base = memory.data();
  plain->size = memory.size();
  plain->rights = Rights::kReadWrite;
  areas_.add(plain);
  EXPECT_EQ(areas_.find(bytes(0, 100)), nullptr);
  EXPECT_EQ(areas_.find(bytes(200, 100)), nullptr) << "its owner lists it nowhere";
  EXPECT_EQ(areas_.find(memory), nullptr);
}

}  // namespace
}  // namespace hawser::agent
