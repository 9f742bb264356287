#include "plan/split.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace hawser::plan {
namespace {

std::byte* const kBase = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);

/// Pieces with gaps between them, so that none merges; one group per list.
Pieces make(const std::vector<std::vector<std::uint64_t>>& groups) {
  std::vector<LocalPart> local;
  std::vector<RemotePart> remote;
  std::uint64_t offset = 0;
  for (std::uint32_t region = 0; region < groups.size(); ++region) {
    for (const std::uint64_t size : groups[region]) {
      local.push_back({kBase, std::uint64_t{1} << 50, offset, size});
      remote.push_back({region, std::uint64_t{1} << 50, offset, size});
      offset += size + 1;
    }
  }
  return pair_parts("plan", local, remote, static_cast<std::uint32_t>(groups.size())).value();
}

std::vector<std::vector<std::uint64_t>> sizes(const ChunkList& list) {
  std::vector<std::vector<std::uint64_t>> result;
  for (const ChunkSpan& chunk : list.chunks) {
    result.emplace_back();
    for (const Piece& piece : chunk.pieces) result.back().push_back(piece.size);
  }
  return result;
}

using Sizes = std::vector<std::vector<std::uint64_t>>;

TEST(Split, RunsAreBoundedByBytesAndPieces) {
  const Pieces pieces = make({{40, 40, 40, 10, 10, 10, 10, 100}});
  EXPECT_EQ(sizes(split("p", pieces, {100, 3}).value()), (Sizes{{40, 40}, {40, 10, 10}, {10, 10}, {100}}));
  EXPECT_EQ(sizes(split("p", pieces, {0, 0}).value()), (Sizes{{40, 40, 40, 10, 10, 10, 10, 100}}));
  EXPECT_EQ(split("p", pieces, {1000, 1}).value().chunks.size(), 8u);
}

TEST(Split, AChunkStaysInOneRegion) {
  const Pieces pieces = make({{1, 1}, {1}, {1, 1, 1}});
  const auto list = split("p", pieces, {100, 100}).value();
  EXPECT_EQ(sizes(list), (Sizes{{1, 1}, {1}, {1, 1, 1}}));
  EXPECT_EQ(list.chunks[2].group, 2u);
  EXPECT_EQ(list.chunks[2].bytes, 3u);
}

TEST(Split, LargePiecesAreCut) {
  const Pieces pieces = make({{10, 250, 10, 100, 300}});
  const auto list = split("p", pieces, {100, 8}).value();
  EXPECT_EQ(sizes(list), (Sizes{{10}, {100}, {100}, {50}, {10}, {100}, {100}, {100}, {100}}));
  EXPECT_EQ(list.chunks[2].pieces[0].local, kBase + 11 + 100);
  EXPECT_EQ(list.chunks[2].pieces[0].remote, 11u + 100);
}

TEST(Split, EveryByteIsInOneChunk) {
  base::Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    Sizes groups(1 + rng.below(4));
    for (auto& group : groups) {
      const std::uint64_t count = 1 + rng.below(60);
      for (std::uint64_t i = 0; i < count; ++i)
        group.push_back(1 + (rng.chance(0.1) ? rng.below(2000) : rng.below(100)));
    }
    const Pieces pieces = make(groups);
    const ChunkLimits limits{1 + rng.below(300), static_cast<std::uint32_t>(1 + rng.below(10))};
    const auto list = split("p", pieces, limits).value();
    // Laid end to end the chunks are the pieces again: each chunk piece continues the piece that is being used up.
    std::size_t piece = 0;
    std::uint64_t used = 0;
    for (const ChunkSpan& chunk : list.chunks) {
      std::uint64_t bytes = 0;
      ASSERT_FALSE(chunk.pieces.empty());
      ASSERT_LE(chunk.pieces.size(), limits.pieces_max);
      for (const Piece& part : chunk.pieces) {
        ASSERT_GE(piece, pieces.groups[chunk.group].first);
        ASSERT_LT(piece, pieces.groups[chunk.group].first + pieces.groups[chunk.group].count);
        ASSERT_EQ(part.local, pieces.all[piece].local + used);
        ASSERT_EQ(part.remote, pieces.all[piece].remote + used);
        bytes += part.size;
        used += part.size;
        ASSERT_LE(used, pieces.all[piece].size);
        if (used == pieces.all[piece].size) ++piece, used = 0;
      }
      ASSERT_EQ(chunk.bytes, bytes);
      ASSERT_LE(bytes, limits.bytes_max);
    }
    ASSERT_EQ(piece, pieces.all.size());
  }
}

TEST(Split, ChunksSurviveMovingThePlan) {
  Pieces pieces = make({{10, 250}});
  auto list = split("p", pieces, {100, 8}).value();
  const Pieces moved_pieces = std::move(pieces);
  const ChunkList moved = std::move(list);
  EXPECT_EQ(moved.chunks[0].pieces.data(), moved_pieces.all.data());
  EXPECT_EQ(moved.chunks[1].pieces.data(), moved.cut.data());
}

TEST(Split, TooManyChunksAreRefused) {
  const Pieces pieces = make({{std::uint64_t{1} << 40}});
  const Status status = split("plan_write", pieces, {1000, 8}).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(),
            "plan_write: 1099511627776 bytes in 1 pieces need more than 16777216 chunks of at most 1000 bytes");
  EXPECT_EQ(split("p", make({{1ull << 40}}), {1 << 20, 8}).value().chunks.size(), 1u << 20);
}

}  // namespace
}  // namespace hawser::plan
