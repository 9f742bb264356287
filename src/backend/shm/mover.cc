#include "backend/shm/mover.h"

#include <errno.h>

#include <algorithm>

namespace hawser::backend::shm {
namespace {

constexpr std::size_t kBatch = 64;  // Pieces given to the copy kernels at once.
constexpr std::size_t kAhead = 8;   // Small pieces whose lines are fetched before they are copied.
constexpr std::size_t kSmall = 64;  // Bytes of a piece that is copied without a call.

base::CopyPiece copy_piece(const ShmBinding& target, Operation op, const Piece& piece, std::uint64_t offset,
                           std::uint64_t size) {
  std::byte* remote = target.base + piece.remote + offset;
  std::byte* local = piece.local + offset;
  if (op == Operation::kWrite) return {remote, local, size};
  return {local, remote, size};
}

/// Many pieces of a few bytes each: their cache misses are what costs, so all lines are asked for well ahead.
bool copy_small(const ShmBinding& target, const Chunk& chunk, base::CopyHint hint) {
  bool is_fence_due = false;
  const std::size_t count = chunk.pieces.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const Piece& ahead = chunk.pieces[i + kAhead];
      __builtin_prefetch(ahead.local);
      __builtin_prefetch(target.base + ahead.remote);
    }
    const Piece& piece = chunk.pieces[i];
    const base::CopyPiece copy = copy_piece(target, chunk.op, piece, 0, piece.size);
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

bool copy_part(const ShmBinding& target, const Chunk& chunk, Cursor* cursor, std::uint64_t limit, base::CopyHint hint) {
  const bool is_whole = cursor->done == 0 && chunk.bytes <= limit;
  if (is_whole && chunk.bytes <= chunk.pieces.size() * kSmall) {
    *cursor = {chunk.pieces.size(), 0, chunk.bytes};
    return copy_small(target, chunk, hint);
  }
  std::array<base::CopyPiece, kBatch> batch;
  bool is_fence_due = false;
  std::uint64_t moved = 0;
  while (cursor->piece < chunk.pieces.size() && moved < limit) {
    std::size_t count = 0;
    for (; count < kBatch && cursor->piece < chunk.pieces.size() && moved < limit; ++count) {
      const Piece& piece = chunk.pieces[cursor->piece];
      const std::uint64_t size = std::min(piece.size - cursor->offset, limit - moved);
      batch[count] = copy_piece(target, chunk.op, piece, cursor->offset, size);
      advance(chunk, cursor, size);
      moved += size;
    }
    is_fence_due |= base::copy_pieces({batch.data(), count}, hint);
  }
  return is_fence_due;
}

CrossMover::Batch CrossMover::collect(const ShmBinding& target, const Chunk& chunk, Cursor cursor,
                                      std::uint64_t limit) {
  Batch batch;
  for (std::uint64_t taken = 0; taken < limit && cursor.piece < chunk.pieces.size();) {
    if (batch.remote_count == kCrossPiecesMax) break;
    const Piece& piece = chunk.pieces[cursor.piece];
    const std::uint64_t size = std::min(piece.size - cursor.offset, limit - taken);
    std::byte* local = piece.local + cursor.offset;
    const std::uint64_t remote = target.address + piece.remote + cursor.offset;
    iovec* last = batch.local_count == 0 ? nullptr : &local_[batch.local_count - 1];
    if (last != nullptr && static_cast<std::byte*>(last->iov_base) + last->iov_len == local) {
      last->iov_len += size;
    } else {
      local_[batch.local_count++] = {local, size};
    }
    remote_[batch.remote_count++] = {reinterpret_cast<void*>(remote), size};
    taken += size;
    advance(chunk, &cursor, size);
  }
  return batch;
}

ssize_t CrossMover::move_part(const CrossMemory& memory, const ShmBinding& target, const Chunk& chunk, Cursor* cursor,
                              std::uint64_t limit) {
  const Batch batch = collect(target, chunk, *cursor, limit);
  const ssize_t moved = memory.move(chunk.op, {local_.data(), batch.local_count}, {remote_.data(), batch.remote_count});
  if (moved > 0) advance(chunk, cursor, static_cast<std::uint64_t>(moved));
  // Nothing moved and no error: the first piece cannot be touched.
  return moved == 0 ? -EFAULT : moved;
}

}  // namespace hawser::backend::shm
