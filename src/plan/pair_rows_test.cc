#include "plan/pair_rows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace hawser::plan {
namespace {

struct Block3 {
  std::uint64_t offset, size;
  std::uint32_t region;
};

RowTable table_of(const std::vector<Block3>& blocks) {
  RowTable table;
  table.reserve(blocks.size());
  for (const Block3& block : blocks) table.add(block.offset, block.size, block.region);
  table.finish();
  return table;
}

std::vector<std::int32_t> all_of(std::size_t count) {
  std::vector<std::int32_t> index(count);
  std::iota(index.begin(), index.end(), 0);
  return index;
}

std::uint64_t address(const Piece& piece) { return reinterpret_cast<std::uintptr_t>(piece.local); }

TEST(RowTable, RegularBlocksBecomeRowsAndAreFoundAgain) {
  std::vector<Block3> blocks;
  for (std::uint32_t region = 0; region < 5; ++region) {
    for (std::uint64_t i = 0; i < 1000; ++i) blocks.push_back({i * 100, 64, region});
  }
  const RowTable table = table_of(blocks);
  EXPECT_FALSE(table.is_list());
  EXPECT_EQ(table.rows().size(), 5u);
  ASSERT_EQ(table.count(), blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(table.at(i).offset, blocks[i].offset);
    EXPECT_EQ(table.at(i).region, blocks[i].region);
  }
}

TEST(RowTable, OneRowNeedsNoHintsAndIsFound) {
  const RowTable one = table_of({{40, 8, 2}});
  EXPECT_EQ(one.at(0).offset, 40u);
  EXPECT_EQ(one.find_row(0), 0u);
  const RowTable row = table_of({{0, 8, 1}, {16, 8, 1}, {32, 8, 1}});
  const RowTable ours = table_of({{1000, 8, 0}, {2000, 8, 0}, {3000, 8, 0}});
  ASSERT_EQ(row.rows().size(), 1u);
  EXPECT_EQ(row.at(2).offset, 32u);
  EXPECT_EQ(row.find_row(2), 0u);
  EXPECT_EQ(row.first_of(0), 0u);
  const std::vector<std::int32_t> index = {2, 0};
  const Result<RowPieces> pieces = pair_rows("test", ours, 1, index, row, 2, index);
  ASSERT_TRUE(pieces) << pieces.error().to_string();
  ASSERT_EQ(pieces->pieces.all.size(), 2u);
  EXPECT_EQ(pieces->pieces.all[0].remote, 32u);
  EXPECT_EQ(address(pieces->pieces.all[0]), 3000u);
}

TEST(RowTable, RoomOfAFormerListIsTakenOverEmpty) {
  std::mt19937 dice(2);
  const auto random_blocks = [&](int count) {
    std::vector<Block3> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back({dice() % 100000, dice() % 5 + 1, 0});
    return blocks;
  };
  RowTable first = table_of(random_blocks(1000));
  ASSERT_TRUE(first.is_list());
  const RowBlock* const room = first.list().data();
  const std::vector<Block3> blocks = random_blocks(500);
  RowTable second;
  second.reuse(first.take_room());
  for (const Block3& block : blocks) second.add(block.offset, block.size, block.region);
  second.finish();
  ASSERT_TRUE(second.is_list());
  EXPECT_EQ(second.list().data(), room);
  ASSERT_EQ(second.count(), blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(second.at(i).offset, blocks[i].offset);
}

TEST(RowTable, IrregularBlocksBecomeAListAndAreFoundAgain) {
  std::mt19937 dice(1);
  std::vector<Block3> blocks;
  for (int i = 0; i < 5000; ++i)
    blocks.push_back({dice() % 100000, dice() % 5 + 1, static_cast<std::uint32_t>(dice() % 3)});
  RowTable table = table_of(blocks);
  EXPECT_TRUE(table.is_list());
  table.add(Row{.offset = 7, .size = 2, .stride = 10, .count = 3, .region = 1});
  ASSERT_EQ(table.count(), blocks.size() + 3);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(table.at(i).offset, blocks[i].offset);
    EXPECT_EQ(table.at(i).size, blocks[i].size);
    EXPECT_EQ(table.at(i).region, blocks[i].region);
  }
  EXPECT_EQ(table.at(blocks.size() + 2).offset, 27u);
}

TEST(PairRows, NeighboursMergeAndGroupsAreByRemoteRegion) {
  const RowTable local = table_of({{1000, 10, 0}, {1010, 10, 0}, {5000, 10, 1}, {1020, 10, 0}});
  const RowTable remote = table_of({{0, 10, 4}, {10, 10, 4}, {0, 10, 2}, {20, 10, 4}});
  const auto rows = pair_rows("call", local, 2, all_of(4), remote, 5, all_of(4));
  ASSERT_TRUE(rows) << rows.error().to_string();
  EXPECT_EQ(rows->locals, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(rows->remotes, (std::vector<std::uint32_t>{4, 2}));
  EXPECT_EQ(rows->pieces.bytes, 40u);
  EXPECT_EQ(rows->pieces.pair_count, 4u);
  ASSERT_EQ(rows->pieces.groups.size(), 2u);
  EXPECT_EQ(rows->pieces.groups[0].count, 1u);
  EXPECT_EQ(rows->pieces.groups[0].bytes, 30u);
  EXPECT_EQ(rows->pieces.groups[1].first, 1u);
  EXPECT_EQ(address(rows->pieces.all[0]), 1000u);
  EXPECT_EQ(rows->pieces.all[0].size, 30u);
  EXPECT_EQ(address(rows->pieces.all[1]), 5000u);
}

class PairRowsAtRandom : public testing::TestWithParam<int> {};

// In one remote region, in two of which the second comes last, and in seven.
TEST_P(PairRowsAtRandom, IndicesPairWhatTheyName) {
  const int regions = GetParam();
  std::mt19937 dice(2);
  std::vector<Block3> ours, theirs;
  for (std::uint64_t i = 0; i < 3000; ++i)
    ours.push_back({1u << 20 | (i * 8), 8, static_cast<std::uint32_t>(i / 1000)});
  for (std::uint64_t i = 0; i < 3000; ++i)
    theirs.push_back({dice() % 100000 * 8, 8, regions == 7 ? static_cast<std::uint32_t>(dice() % 7) : 3});
  if (regions == 2) theirs.back().region = 5;
  const RowTable local = table_of(ours), remote = table_of(theirs);
  std::vector<std::int32_t> l, r;
  for (int i = 0; i < 5000; ++i) {
    l.push_back(static_cast<std::int32_t>(dice() % 3000));
    r.push_back(static_cast<std::int32_t>(dice() % 3000));
  }
  if (regions == 2) r.back() = 2999;
  const auto rows = pair_rows("call", local, 3, l, remote, 7, r);
  ASSERT_TRUE(rows) << rows.error().to_string();
  // What each group should hold, byte for byte and in order.
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> wanted(7), got(7);
  for (std::size_t i = 0; i < l.size(); ++i) {
    const Block3 &from = ours[static_cast<std::size_t>(l[i])], &to = theirs[static_cast<std::size_t>(r[i])];
    wanted[to.region].emplace_back(from.offset, to.offset);
  }
  for (const PieceGroup& group : rows->pieces.groups) {
    for (std::size_t i = group.first; i < group.first + group.count; ++i) {
      const Piece& piece = rows->pieces.all[i];
      for (std::uint64_t at = 0; at < piece.size; at += 8) {
        got[rows->remotes[group.region]].emplace_back(address(piece) + at, piece.remote + at);
      }
    }
  }
  EXPECT_EQ(wanted, got);
  EXPECT_EQ(rows->pieces.groups.size(), static_cast<std::size_t>(regions));
  EXPECT_EQ(rows->pieces.bytes, 40'000u);
  EXPECT_LE(rows->locals.size(), 3u);
}
INSTANTIATE_TEST_SUITE_P(PairRows, PairRowsAtRandom, testing::Values(1, 2, 7));

TEST(PairRows, WhatIsWrongIsNamed) {
  const RowTable local = table_of({{1000, 10, 0}, {2000, 20, 0}}), remote = table_of({{0, 10, 0}});
  const auto text = [&](std::vector<std::int32_t> l, std::vector<std::int32_t> r) {
    return pair_rows("make", local, 1, l, remote, 1, r).error().to_string();
  };
  EXPECT_NE(text({0, 5}, {0, 0}).find("local index 5 at position 1 is not in a list of 2"), std::string::npos);
  EXPECT_NE(text({0}, {-1}).find("remote index -1 at position 0 is not in a list of 1"), std::string::npos);
  EXPECT_NE(text({1}, {0}).find("20 local bytes (index 1) and 10 remote bytes"), std::string::npos);
  const RowTable two = table_of({{0, 10, 0}, {50, 10, 1}});
  EXPECT_NE(pair_rows("make", local, 1, std::vector{0, 0, 5}, two, 2, std::vector{0, 1, 0})
                .error()
                .to_string()
                .find("local index 5 at position 2"),
            std::string::npos);
  EXPECT_NE(text({0, 0}, {0}).find("2 local indices and 1 remote"), std::string::npos);
  EXPECT_NE(text({}, {}).find("empty"), std::string::npos);
  EXPECT_FALSE(pair_rows("make", RowTable(), 0, all_of(1), remote, 1, all_of(1)));
}

}  // namespace
}  // namespace hawser::plan
