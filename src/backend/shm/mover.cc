#include "backend/shm/mover.h"

#include <errno.h>

#include <algorithm>

namespace hawser::backend::shm {

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
