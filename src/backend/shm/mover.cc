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

int CrossMover::move_pairs(const CrossMemory& memory, Operation op, std::size_t count) {
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < count; ++i) wanted += local_[i].iov_len;
  if (wanted == 0) return 0;
  const ssize_t moved = memory.move(op, {local_.data(), count}, {remote_.data(), count});
  if (moved < 0) return static_cast<int>(moved);
  return static_cast<std::uint64_t>(moved) == wanted ? 0 : -EFAULT;
}

int CrossMover::move_ends(const CrossMemory& memory, const ShmBinding& target, const Chunk& chunk) {
  std::size_t count = 0;
  const auto add = [&](const Piece& piece, std::uint64_t from, std::uint64_t to) {
    from = std::max(from, piece.remote);
    to = std::min(to, piece.remote + piece.size);
    if (from >= to) return;
    local_[count] = {piece.local + (from - piece.remote), to - from};
    remote_[count++] = {reinterpret_cast<void*>(target.address + from), to - from};
  };
  for (const Piece& piece : chunk.pieces) {
    add(piece, 0, target.head);
    add(piece, target.size - target.tail, target.size);
    if (count + 2 <= kCrossPiecesMax) continue;
    if (const int error = move_pairs(memory, chunk.op, count); error != 0) return error;
    count = 0;
  }
  return move_pairs(memory, chunk.op, count);
}

}  // namespace hawser::backend::shm
