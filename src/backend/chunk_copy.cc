#include "backend/chunk_copy.h"

#include <algorithm>
#include <array>

namespace hawser::backend {
namespace {

constexpr std::size_t kBatch = 64;  // Pieces given to the copy kernels at once.
constexpr std::size_t kAhead = 8;   // Small pieces whose lines are fetched before they are copied.
constexpr std::size_t kSmall = 64;  // Bytes of a piece that is copied without a call.

base::CopyPiece copy_piece(std::byte* region, Operation op, const Piece& piece, std::uint64_t offset,
                           std::uint64_t size) {
  std::byte* remote = region + piece.remote + offset;
  std::byte* local = piece.local + offset;
  if (op == Operation::kWrite) return {remote, local, size};
  return {local, remote, size};
}

/// Many pieces of a few bytes each: their cache misses are what costs, so all lines are asked for well ahead.
bool copy_small(std::byte* region, const Chunk& chunk, base::CopyHint hint) {
  bool is_fence_due = false;
  const std::size_t count = chunk.pieces.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const Piece& ahead = chunk.pieces[i + kAhead];
      __builtin_prefetch(ahead.local);
      __builtin_prefetch(region + ahead.remote);
    }
    const Piece& piece = chunk.pieces[i];
    const base::CopyPiece copy = copy_piece(region, chunk.op, piece, 0, piece.size);
    is_fence_due |= base::copy_bytes(copy.target, copy.source, copy.size, hint);
  }
  return is_fence_due;
}

}  // namespace

void advance(const Chunk& chunk, Cursor* cursor, std::uint64_t size) {
  cursor->done += size;
  cursor->offset += size;
  while (cursor->piece < chunk.pieces.size() && cursor->offset >= chunk.pieces[cursor->piece].size) {
    cursor->offset -= chunk.pieces[cursor->piece].size;
    ++cursor->piece;
  }
}

bool copy_part(std::byte* region, const Chunk& chunk, Cursor* cursor, std::uint64_t limit, base::CopyHint hint) {
  const bool is_whole = cursor->done == 0 && chunk.bytes <= limit;
  if (is_whole && chunk.bytes <= chunk.pieces.size() * kSmall) {
    *cursor = {chunk.pieces.size(), 0, chunk.bytes};
    return copy_small(region, chunk, hint);
  }
  std::array<base::CopyPiece, kBatch> batch;
  bool is_fence_due = false;
  std::uint64_t moved = 0;
  while (cursor->piece < chunk.pieces.size() && moved < limit) {
    std::size_t count = 0;
    for (; count < kBatch && cursor->piece < chunk.pieces.size() && moved < limit; ++count) {
      const Piece& piece = chunk.pieces[cursor->piece];
      const std::uint64_t size = std::min(piece.size - cursor->offset, limit - moved);
      batch[count] = copy_piece(region, chunk.op, piece, cursor->offset, size);
      advance(chunk, cursor, size);
      moved += size;
    }
    is_fence_due |= base::copy_pieces({batch.data(), count}, hint);
  }
  return is_fence_due;
}

}  // namespace hawser::backend
