#pragma once

// Copying a chunk, whole or in parts, where the target's memory can be reached by this process.
//
// Thread rule: one thread at a time. Lifetime: a Cursor belongs to one chunk.

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "base/copy.h"

namespace hawser::backend {

/// Bytes of one piece that are copied as four runs at most. The nearer the runs, the slower (NOTES.md of shm).
inline constexpr std::uint64_t kCopyBlock = 1024 * 1024;

/// How far a chunk has got.
struct Cursor {
  std::size_t piece = 0;
  std::uint64_t offset = 0;  ///< In that piece, bytes.
  std::uint64_t done = 0;    ///< Bytes in all.
  /// Large copies advance four runs in step: four pieces, or the quarters of a block of one. So many bytes of each of
  /// them are done; `piece` and `offset` say where the first begins.
  std::uint64_t run = 0;
};

/// Moves a cursor on by `size` bytes.
void advance(const Chunk& chunk, Cursor* cursor, std::uint64_t size);

constexpr Rights right_for(Operation op) { return op == Operation::kWrite ? Rights::kWrite : Rights::kRead; }

/// Whether all pieces lie in a region of `size` bytes whose `rights` allow the operation. Planned chunks always do; a
/// wrong plan or card must not become a wild store.
inline bool admits(std::uint64_t size, Rights rights, const Chunk& chunk) {
  if (!allows(rights, right_for(chunk.op))) return false;
  for (const Piece& piece : chunk.pieces) {
    if (!in_bounds(piece.remote, piece.size, size)) [[unlikely]]
      return false;
  }
  return true;
}

/// Copies up to `limit` bytes of an admitted chunk, or less than 1 KiB more, between local memory and a region that
/// begins at `region`; the cursor tells how many. True when a base::stream_fence() is due.
bool copy_part(std::byte* region, const Chunk& chunk, Cursor* cursor, std::uint64_t limit, base::CopyHint hint);

}  // namespace hawser::backend
