#include "backend/region_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace hawser::backend {
namespace {

RegionEntry entry(std::uint64_t key, Rights rights = Rights::kReadWrite) {
  RegionEntry made;
  made.key = base::Id128{key, ~key};
  made.size = 4096;
  made.rights = rights;
  return made;
}

TEST(RegionTable, FindsByIndexGenerationKeyAndRight) {
  RegionTable table(8);
  auto added = table.add(entry(7, Rights::kRead)).value();
  EXPECT_NE(added->generation, 0u);
  EXPECT_TRUE(table.find(added->index, added->generation, added->key, Rights::kRead));
  EXPECT_TRUE(table.find(added->index, added->generation, added->key, Rights::kNone));
  EXPECT_EQ(table.at(added->index), added);
  EXPECT_EQ(table.all().size(), 1u);
}

TEST(RegionTable, AllRefusalsReadTheSame) {
  RegionTable table(8);
  auto added = table.add(entry(7, Rights::kRead)).value();
  const auto find = [&](std::uint32_t index, std::uint32_t generation, base::Id128 key, Rights right) {
    return table.find(index, generation, key, right).error();
  };
  const Status wrong_key = find(added->index, added->generation, base::Id128{7, 7}, Rights::kRead);
  EXPECT_EQ(wrong_key.code(), Code::kDenied);
  EXPECT_EQ(wrong_key, find(added->index, added->generation, added->key, Rights::kWrite));
  EXPECT_EQ(wrong_key, find(added->index, added->generation + 1, added->key, Rights::kRead));
  EXPECT_EQ(wrong_key, find(added->index + 1, added->generation, added->key, Rights::kRead));
  EXPECT_EQ(wrong_key, find(UINT32_MAX, added->generation, added->key, Rights::kRead));
  table.close(added->index, added->generation);
  EXPECT_EQ(wrong_key, find(added->index, added->generation, added->key, Rights::kRead));
}

TEST(RegionTable, ClosedKeepsItsIndexUntilRemoved) {
  RegionTable table(8);
  auto first = table.add(entry(1)).value();
  table.close(first->index, first->generation);
  EXPECT_FALSE(table.is_open(first->index, first->generation));
  EXPECT_NE(table.at(first->index), nullptr);
  EXPECT_TRUE(table.all().empty());
  auto second = table.add(entry(2)).value();
  EXPECT_NE(second->index, first->index);
  table.remove(first->index, first->generation);
  auto third = table.add(entry(3)).value();
  EXPECT_EQ(third->index, first->index);
  EXPECT_NE(third->generation, first->generation);
  EXPECT_FALSE(table.is_open(first->index, first->generation));
  table.close(first->index, first->generation);  // stale: must not touch the third
  table.remove(first->index, first->generation);
  EXPECT_TRUE(table.is_open(third->index, third->generation));
  EXPECT_EQ(table.count(), 2u);
}

TEST(RegionTable, LimitIsNamed) {
  RegionTable table(2);
  auto first = table.add(entry(1)).value();
  ASSERT_TRUE(table.add(entry(2)));
  const Status full = table.add(entry(3)).error();
  EXPECT_EQ(full.code(), Code::kBusy);
  EXPECT_NE(full.message().find("2 regions"), std::string_view::npos);
  table.close(first->index, first->generation);
  EXPECT_FALSE(table.add(entry(3)));
  table.remove(first->index, first->generation);
  EXPECT_TRUE(table.add(entry(3)));
}

TEST(RegionTable, TakesAllOfSeveralOrNone) {
  RegionTable table(3);
  const auto made = [](std::uint64_t key) { return std::make_shared<RegionEntry>(entry(key)); };
  const std::vector<std::shared_ptr<RegionEntry>> two{made(1), made(2)}, more{made(3), made(4)};
  ASSERT_TRUE(table.add(two).ok());
  EXPECT_EQ(table.room(), 1u);
  EXPECT_NE(two[0]->index, two[1]->index);
  EXPECT_EQ(table.add(more).code(), Code::kBusy);
  EXPECT_EQ(table.count(), 2u);
  const std::vector<RegionId> ids{{two[0]->index, two[0]->generation}, {two[1]->index, two[1]->generation + 1}};
  table.close(ids);
  EXPECT_FALSE(table.is_open(two[0]->index, two[0]->generation));
  EXPECT_TRUE(table.is_open(two[1]->index, two[1]->generation)) << "another generation was named";
  table.remove(ids);
  EXPECT_EQ(table.count(), 1u);
  ASSERT_TRUE(table.add(more).ok());
  EXPECT_EQ(table.room(), 0u);
}

TEST(InBounds, IsSafeAgainstOverflow) {
  EXPECT_TRUE(in_bounds(0, 0, 0));
  EXPECT_TRUE(in_bounds(4, 4, 8));
  EXPECT_FALSE(in_bounds(4, 5, 8));
  EXPECT_FALSE(in_bounds(9, 0, 8));
  EXPECT_FALSE(in_bounds(UINT64_MAX, 2, 8));
  EXPECT_FALSE(in_bounds(2, UINT64_MAX, 8));
}

}  // namespace
}  // namespace hawser::backend
