#include "base/slot_table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"

namespace hawser::base {
namespace {

TEST(SlotTable, FindsAndForgets) {
  SlotTable<std::string> table(10);
  const auto entry = table.emplace("a");
  ASSERT_TRUE(entry);
  EXPECT_FALSE(entry.id.is_null());
  EXPECT_EQ(table.get(entry.id), entry.value);
  EXPECT_EQ(*table.get(entry.id), "a");
  EXPECT_TRUE(table.erase(entry.id));
  EXPECT_EQ(table.get(entry.id), nullptr);
  EXPECT_FALSE(table.erase(entry.id));
  const auto again = table.emplace("b");
  EXPECT_EQ(again.id.index, entry.id.index) << "the warm slot first";
  EXPECT_NE(again.id.generation, entry.id.generation);
  EXPECT_EQ(table.get(entry.id), nullptr);
}

TEST(SlotTable, ForgedIdsFindNothing) {
  SlotTable<int> table(100);
  const auto entry = table.emplace(1);
  EXPECT_EQ(table.get({}), nullptr);
  EXPECT_EQ(table.get({UINT32_MAX, 1}), nullptr);
  EXPECT_EQ(table.get({entry.id.index, entry.id.generation + 1}), nullptr);
  table.erase(entry.id);
  EXPECT_EQ(table.get({entry.id.index, entry.id.generation + 1}), nullptr) << "free, though the generation is right";
  EXPECT_EQ(SlotId::from_u64(entry.id.to_u64()), entry.id);
}

TEST(SlotTable, AddressesStayAndTheLimitHolds) {
  constexpr std::uint32_t kLimit = 1000;
  SlotTable<std::uint32_t> table(kLimit);
  std::vector<SlotTable<std::uint32_t>::Entry> entries;
  for (std::uint32_t i = 0; i < kLimit; ++i) {
    entries.push_back(table.emplace(i));
    ASSERT_TRUE(entries.back());
  }
  EXPECT_TRUE(table.full());
  EXPECT_FALSE(table.emplace(7u));
  for (std::uint32_t i = 0; i < kLimit; ++i) {
    EXPECT_EQ(table.get(entries[i].id), entries[i].value);
    EXPECT_EQ(*entries[i].value, i);
  }
  table.erase(entries[500].id);
  EXPECT_TRUE(table.emplace(7u));
  EXPECT_FALSE(table.emplace(8u));
}

TEST(SlotTable, VisitorsMayErase) {
  SlotTable<int> table(64);
  for (int i = 0; i < 64; ++i) table.emplace(i);
  table.for_each([&](SlotId id, int& value) {
    if (value % 2 == 0) table.erase(id);
  });
  EXPECT_EQ(table.size(), 32u);
  int sum = 0;
  table.for_each([&](SlotId, int& value) { sum += value; });
  EXPECT_EQ(sum, 32 * 32);
}

TEST(SlotTable, DestroysItsValues) {
  const auto counted = std::make_shared<int>(0);
  {
    SlotTable<std::shared_ptr<int>> table(10);
    table.emplace(counted);
    table.erase(table.emplace(counted).id);
    EXPECT_EQ(counted.use_count(), 2);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

struct alignas(64) Wide {
  int value;
};

TEST(SlotTable, KeepsAlignment) {
  SlotTable<Wide> table(100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(table.emplace(Wide{i}).value) % 64, 0u);
  }
}

TEST(SlotTable, AgreesWithAMap) {
  Rng rng(3);
  SlotTable<std::uint64_t> table(50);
  std::map<SlotId, std::uint64_t> model;
  std::vector<SlotId> all;
  for (int step = 0; step < 20'000; ++step) {
    if (rng.chance(0.5)) {
      const std::uint64_t value = rng.u64();
      const auto entry = table.emplace(value);
      ASSERT_EQ(static_cast<bool>(entry), model.size() < 50);
      if (entry) {
        ASSERT_TRUE(model.emplace(entry.id, value).second);
        all.push_back(entry.id);
      }
    } else if (!all.empty()) {
      const SlotId id = all[rng.below(all.size())];
      ASSERT_EQ(table.erase(id), model.erase(id) == 1);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (const SlotId id : all) {
    const auto it = model.find(id);
    const std::uint64_t* value = table.get(id);
    ASSERT_EQ(value != nullptr, it != model.end());
    if (value != nullptr) {
      EXPECT_EQ(*value, it->second);
    }
  }
}

}  // namespace
}  // namespace hawser::base
