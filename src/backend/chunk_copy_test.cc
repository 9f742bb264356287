#include "backend/chunk_copy.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace hawser::backend {
namespace {

Chunk chunk_of(Operation op, std::span<const Piece> pieces) {
  Chunk chunk;
  chunk.op = op;
  chunk.pieces = pieces;
  for (const Piece& piece : pieces) chunk.bytes += piece.size;
  return chunk;
}

std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> bytes(size);
  base::Rng rng(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.u64());
  return bytes;
}

/// Scatters pieces of sizes below `size_max` and copies them in steps of `limit`, there and back.
void round_trip(std::size_t count, std::size_t size_max, std::uint64_t limit) {
  base::Rng rng(count + size_max);
  auto local = noise(count * size_max);
  const auto wanted = local;
  std::vector<std::byte> region(count * size_max);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    pieces.push_back({local.data() + i * size_max, (count - 1 - i) * size_max, rng.below(size_max + 1)});
  }
  for (const Operation op : {Operation::kWrite, Operation::kRead}) {
    const Chunk chunk = chunk_of(op, pieces);
    Cursor cursor;
    while (cursor.done < chunk.bytes) {
      const std::uint64_t before = cursor.done;
      copy_part(region.data(), chunk, &cursor, limit, {.total_bytes = chunk.bytes, .scattered = true});
      ASSERT_GT(cursor.done, before);
      ASSERT_LE(cursor.done - before, limit);
    }
    base::stream_fence();
    ASSERT_EQ(cursor.done, chunk.bytes);
    if (op == Operation::kWrite) std::fill(local.begin(), local.end(), std::byte{0});
  }
  for (const Piece& piece : pieces) {
    const auto at = static_cast<std::size_t>(piece.local - local.data());
    ASSERT_TRUE(std::equal(piece.local, piece.local + piece.size, wanted.data() + at));
  }
}

TEST(ChunkCopy, WholeAndInParts) {
  round_trip(1, 8, UINT64_MAX);
  round_trip(1000, 8, UINT64_MAX);
  round_trip(1000, 8, 100);
  round_trip(100, 5000, UINT64_MAX);
  round_trip(100, 5000, 4096);
  round_trip(3, 1 << 20, 256 * 1024);
}

TEST(ChunkCopy, AdvancePassesEmptyPieces) {
  std::vector<std::byte> local(16);
  const Piece pieces[] = {{local.data(), 0, 0}, {local.data(), 0, 8}, {local.data(), 8, 0}, {local.data(), 8, 8}};
  const Chunk chunk = chunk_of(Operation::kWrite, pieces);
  Cursor cursor;
  advance(chunk, &cursor, 8);
  EXPECT_EQ(cursor.piece, 3u);
  advance(chunk, &cursor, 3);
  EXPECT_EQ(cursor.offset, 3u);
  advance(chunk, &cursor, 5);
  EXPECT_EQ(cursor.piece, 4u);
  EXPECT_EQ(cursor.done, 16u);
}

TEST(ChunkCopy, AdmitsByRightAndBounds) {
  std::vector<std::byte> local(16);
  const Piece piece{local.data(), 8, 8};
  const Chunk write = chunk_of(Operation::kWrite, {&piece, 1});
  EXPECT_TRUE(admits(16, Rights::kWrite, write));
  EXPECT_FALSE(admits(16, Rights::kRead, write));
  EXPECT_FALSE(admits(15, Rights::kReadWrite, write));
}

}  // namespace
}  // namespace hawser::backend
