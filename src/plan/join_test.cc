#include "plan/join.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace hawser::plan {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 40;  ///< Of the local region; nobody looks what lies there.

std::byte* at(std::uint64_t offset) { return reinterpret_cast<std::byte*>(kBase + offset); }

struct Pair {
  std::uint64_t local, remote, size;
  std::uint32_t region = 0;
};

Pieces pieces_of(const std::vector<Pair>& pairs, std::uint32_t regions) {
  std::vector<LocalPart> ours;
  std::vector<RemotePart> theirs;
  for (const Pair& pair : pairs) {
    ours.push_back({.base = at(0), .region_size = 1 << 20, .offset = pair.local, .size = pair.size});
    theirs.push_back({.region = pair.region, .region_size = 1 << 20, .offset = pair.remote, .size = pair.size});
  }
  return std::move(pair_parts("test", ours, theirs, regions).value());
}

void expect_piece(const Piece& piece, const Pair& pair) {
  EXPECT_EQ(piece.local, at(pair.local));
  EXPECT_EQ(piece.remote, pair.remote);
  EXPECT_EQ(piece.size, pair.size);
}

TEST(JoinPieces, KeepTheOrderOfTheirPlans) {
  const Pieces first = pieces_of({{4096, 100, 8}, {8192, 0, 8}}, 1), second = pieces_of({{64, 500, 16}}, 1);
  const std::vector<std::uint32_t> same = {0};
  const std::vector<JoinPart> parts = {{&first, same}, {&second, same}};
  const Pieces joined = std::move(join_pieces("test", parts, 1).value());
  ASSERT_EQ(joined.all.size(), 3u);
  ASSERT_EQ(joined.groups.size(), 1u);
  EXPECT_EQ(joined.groups[0].count, 3u);
  EXPECT_EQ(joined.groups[0].bytes, 32u);
  EXPECT_EQ(joined.bytes, 32u);
  EXPECT_EQ(joined.pair_count, 3u);
  expect_piece(joined.all[0], {4096, 100, 8});
  expect_piece(joined.all[1], {8192, 0, 8});
  expect_piece(joined.all[2], {64, 500, 16});
}

TEST(JoinPieces, OfOneRegionStandTogetherWhicheverPlanTheyCameFrom) {
  const Pieces first = pieces_of({{64, 0, 8, 0}, {128, 0, 8, 1}}, 2), second = pieces_of({{256, 64, 4, 0}}, 1);
  // What the second plan calls region 0 is the first one's region 1, and its region 0 a third one.
  const std::vector<std::uint32_t> of_first = {2, 1}, of_second = {1};
  const std::vector<JoinPart> parts = {{&first, of_first}, {&second, of_second}};
  const Pieces joined = std::move(join_pieces("test", parts, 3).value());
  ASSERT_EQ(joined.groups.size(), 2u);
  EXPECT_EQ(joined.groups[0].region, 2u);
  EXPECT_EQ(joined.groups[0].first, 0u);
  EXPECT_EQ(joined.groups[0].count, 1u);
  EXPECT_EQ(joined.groups[1].region, 1u);
  EXPECT_EQ(joined.groups[1].first, 1u);
  EXPECT_EQ(joined.groups[1].count, 2u);
  EXPECT_EQ(joined.groups[1].bytes, 12u);
  expect_piece(joined.all[1], {128, 0, 8});
  expect_piece(joined.all[2], {256, 64, 4});
}

TEST(JoinPieces, ThatHaveBecomeNeighboursAreOnePiece) {
  const Pieces first = pieces_of({{64, 0, 8, 0}, {128, 0, 8, 1}}, 2), second = pieces_of({{72, 8, 8, 0}}, 1);
  const std::vector<std::uint32_t> both = {0, 1}, one = {0};
  const std::vector<JoinPart> parts = {{&first, both}, {&second, one}};
  const Pieces joined = std::move(join_pieces("test", parts, 2).value());
  ASSERT_EQ(joined.all.size(), 2u);
  expect_piece(joined.all[0], {64, 0, 16});
  expect_piece(joined.all[1], {128, 0, 8});
  EXPECT_EQ(joined.groups[1].first, 1u) << "the gap that the merge left is closed";
  EXPECT_EQ(joined.pair_count, 3u);
}

TEST(JoinPieces, OfNoPlansAreRefused) { EXPECT_EQ(join_pieces("test", {}, 0).error().code(), Code::kInvalid); }

TEST(JoinPieces, AreBounded) {
  constexpr std::size_t kParts = 64, kEach = kPairsMax / kParts;
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < kEach; ++i)
    pairs.push_back({.local = 2 * (i % 1000), .remote = 4 * (i % 1000), .size = 1});
  const Pieces part = pieces_of(pairs, 1), one = pieces_of({{64, 0, 8}}, 1);
  ASSERT_EQ(part.all.size(), kEach);
  const std::vector<std::uint32_t> same = {0};
  std::vector<JoinPart> parts(kParts, JoinPart{&part, same});
  parts.push_back({&one, same});
  const Status refused = join_pieces("test", parts, 1).error();
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.to_string().find("more than 67108864 pieces"), std::string::npos) << refused.to_string();
}

}  // namespace
}  // namespace hawser::plan
