#include "backend/chunk_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
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

constexpr std::size_t kPage = 4096;

std::span<std::byte> page_in(std::vector<std::byte>& room, std::size_t shift, std::size_t size) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(room.data()) % kPage;
  return std::span(room).subspan(kPage - past + shift, size);
}

enum class Sizes { kRandom, kEqual };

/// Scatters pieces of sizes up to `size_max` and copies them in steps of `limit`, there and back. The memories begin
/// `shift` bytes after a page.
void round_trip(std::size_t count, std::size_t size_max, std::uint64_t limit, Sizes sizes = Sizes::kRandom,
                std::size_t shift = 0) {
  base::Rng rng(count + size_max);
  const auto wanted = noise(count * size_max);
  std::vector<std::byte> local_room(wanted.size() + kPage + shift), region_room(local_room.size());
  const std::span<std::byte> local = page_in(local_room, shift, wanted.size());
  const std::span<std::byte> region = page_in(region_room, shift, wanted.size());
  std::ranges::copy(wanted, local.begin());
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t size = sizes == Sizes::kEqual ? size_max : rng.below(size_max + 1);
    pieces.push_back({local.data() + i * size_max, (count - 1 - i) * size_max, size});
  }
  for (const Operation op : {Operation::kWrite, Operation::kRead}) {
    const Chunk chunk = chunk_of(op, pieces);
    Cursor cursor;
    while (cursor.done < chunk.bytes) {
      const std::uint64_t before = cursor.done;
      copy_part(region.data(), chunk, &cursor, limit, {.total_bytes = chunk.bytes, .scattered = true});
      ASSERT_GT(cursor.done, before);
      ASSERT_TRUE(cursor.done - before <= limit || cursor.done - before - limit < 1024);
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

TEST(ChunkCopy, RunsOfPiecesAndOfBlocks) {
  for (const std::size_t shift : {0u, 8u, 64u}) {
    for (const std::uint64_t limit : {std::uint64_t{1024}, std::uint64_t{64 * 1024}, std::uint64_t{UINT64_MAX}}) {
      round_trip(11, 16 * 1024, limit, Sizes::kEqual, shift);
      round_trip(6, 64 * 1024, limit, Sizes::kEqual, shift);
      round_trip(4, 100 * 256, limit, Sizes::kEqual, shift);
      round_trip(1, (1 << 20) + 100, limit, Sizes::kEqual, shift);
      round_trip(5, 300 * 1024, limit, Sizes::kEqual, shift);
      round_trip(7, 300 * 1024, limit, Sizes::kRandom, shift);
    }
  }
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
