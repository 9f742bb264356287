#include "plan/table_shape.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"

namespace hawser::plan {
namespace {

using Ranges = std::vector<StridedRange>;

Result<TableShape> make(std::uint64_t region_size, const Ranges& ranges) {
  return TableShape::make("table of region \"kv\"", nullptr, region_size, ranges);
}

/// What a table must answer, by walking it from the start.
std::vector<Block> walk(const Ranges& ranges) {
  std::vector<Block> blocks;
  for (const StridedRange& range : ranges) {
    for (std::uint64_t i = 0; i < range.count; ++i) blocks.push_back({range.offset + i * range.stride, range.size});
  }
  return blocks;
}

void expect_same(const TableShape& shape, const Ranges& ranges) {
  const std::vector<Block> expected = walk(ranges);
  ASSERT_EQ(shape.count(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(shape.at(i).offset, expected[i].offset) << i;
    ASSERT_EQ(shape.at(i).size, expected[i].size) << i;
  }
  Ranges entries;
  for (std::size_t i = 0; i < shape.entry_count(); ++i) entries.push_back(shape.entry(i));
  const std::vector<Block> sent = walk(entries);
  ASSERT_EQ(sent.size(), expected.size());
  for (std::size_t i = 0; i < sent.size(); ++i) ASSERT_EQ(sent[i].offset, expected[i].offset);
}

TEST(TableShape, WholeBlocksLeaveTheRestOut) {
  const auto shape = TableShape::whole_blocks("t", nullptr, 1000, 300).value();
  EXPECT_EQ(shape.count(), 3u);
  EXPECT_EQ(shape.uniform_size(), 300u);
  EXPECT_EQ(shape.at(2).offset, 600u);
  EXPECT_EQ(TableShape::whole_blocks("t", nullptr, 1000, 1000).value().count(), 1u);
  for (const std::uint64_t bad : {0ull, 1001ull, ~0ull}) {
    const Status status = TableShape::whole_blocks("table of \"kv\"", nullptr, 1000, bad).status();
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_EQ(status.message(),
              "table of \"kv\": no block of " + std::to_string(bad) + " bytes fits into the region of 1000 bytes");
  }
}

TEST(TableShape, ARegularListBecomesOneRange) {
  const Ranges list{{100, 10, 0, 1}, {150, 10, 7, 1}, {200, 10, 0, 1}};
  const auto shape = make(300, list).value();
  EXPECT_EQ(shape.entry_count(), 1u);
  EXPECT_EQ(shape.entry(0).stride, 50u);
  expect_same(shape, list);
}

TEST(TableShape, IrregularListsStayLists) {
  for (const Ranges& list : {Ranges{{100, 10, 0, 1}, {150, 11, 0, 1}}, Ranges{{150, 10, 0, 1}, {100, 10, 0, 1}},
                             Ranges{{0, 10, 0, 1}, {10, 10, 0, 1}, {30, 10, 0, 1}}}) {
    const auto shape = make(300, list).value();
    EXPECT_EQ(shape.entry_count(), list.size());
    expect_same(shape, list);
  }
}

TEST(TableShape, MixedTablesFindEachBlock) {
  expect_same(make(10000, {{0, 10, 20, 7}, {5000, 10, 10, 1}, {200, 10, 0, 90}, {300, 5, 5, 2}}).value(),
              {{0, 10, 20, 7}, {5000, 10, 10, 1}, {200, 10, 0, 90}, {300, 5, 5, 2}});
  base::Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    Ranges ranges;
    const std::size_t entries = 1 + static_cast<std::size_t>(rng.below(40));
    for (std::size_t i = 0; i < entries; ++i) {
      const std::uint64_t count = rng.chance(0.1) ? 1 + rng.below(3000) : 1 + rng.below(4);
      ranges.push_back({rng.below(1000), 1 + rng.below(64), rng.below(100), count});
    }
    expect_same(make(1 << 20, ranges).value(), ranges);
  }
}

TEST(TableShape, AMillionBlocksCostNothing) {
  const auto shape = TableShape::whole_blocks("t", nullptr, 4096ull * 1'000'000, 4096).value();
  EXPECT_EQ(shape.count(), 1'000'000u);
  EXPECT_EQ(shape.entry_count(), 1u);
  EXPECT_EQ(shape.at(999'999).offset, 4096ull * 999'999);
}

TEST(TableShape, ErrorsNameTheRangeAndTheRegion) {
  EXPECT_EQ(make(100, {}).status().message(), "table of region \"kv\": the list of ranges is empty");
  EXPECT_EQ(make(100, {{0, 1, 0, 1}, {0, 0, 0, 1}}).status().message(),
            "table of region \"kv\": range 1 is empty (size 0, count 1)");
  EXPECT_EQ(make(100, {{0, 1, 0, 0}}).status().message(), "table of region \"kv\": range 0 is empty (size 1, count 0)");
  EXPECT_EQ(make(100, {{90, 11, 0, 1}}).status().message(),
            "table of region \"kv\": range 0 (offset 90, size 11) leaves the region of 100 bytes");
  EXPECT_EQ(make(100, {{0, 10, 10, 11}}).status().message(),
            "table of region \"kv\": range 0 (11 blocks of 10 bytes, stride 10, from offset 0) leaves the region of "
            "100 bytes");
}

TEST(TableShape, NumbersThatOverflowAreRefused) {
  constexpr std::uint64_t kMax = UINT64_MAX;
  for (const StridedRange& bad : {StridedRange{kMax, 1, 0, 1}, StridedRange{1, kMax, 0, 1}, StridedRange{0, 1, kMax, 2},
                                  StridedRange{0, 1, 1ull << 32, (1ull << 32) + 1}, StridedRange{kMax - 1, 1, 1, 3}}) {
    EXPECT_EQ(make(kMax, {bad}).status().code(), Code::kInvalid) << bad.offset;
  }
  EXPECT_TRUE(make(kMax, {{kMax - 1, 1, 0, 1}}).has_value());
  EXPECT_TRUE(make(kMax, {{0, kMax, 0, kMax}}).has_value());
  EXPECT_EQ(make(kMax, {{0, 1, 0, kMax}, {0, 1, 0, 1}}).status().message(),
            "table of region \"kv\": more than 2^64 blocks");
}

TEST(TableShape, HugeCountsAreIndexed) {
  const Ranges ranges{{0, 1, 0, 1ull << 62}, {5, 1, 0, 3}, {9, 1, 1, 1ull << 40}};
  const auto shape = make(1ull << 50, ranges).value();
  EXPECT_EQ(shape.at((1ull << 62) - 1).offset, 0u);
  EXPECT_EQ(shape.at((1ull << 62) + 2).offset, 5u);
  EXPECT_EQ(shape.at((1ull << 62) + 3 + 77).offset, 86u);
}

}  // namespace
}  // namespace hawser::plan
