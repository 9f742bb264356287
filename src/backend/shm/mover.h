#pragma once

// Mover: moves the bytes of a chunk, whole or in parts: by copies into mapped memory, or by cross-memory calls.
//
// Thread rule: one thread at a time. Lifetime: a Cursor belongs to one chunk.

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/shm/binding.h"
#include "backend/shm/cross_memory.h"
#include "base/copy.h"

namespace hawser::backend::shm {

/// How far a chunk has got.
struct Cursor {
  std::size_t piece = 0;
  std::uint64_t offset = 0;  ///< In that piece, bytes.
  std::uint64_t done = 0;    ///< Bytes in all.
};

/// Copies up to `limit` bytes of an admitted chunk; the cursor tells how many. True when a base::stream_fence() is due.
bool copy_part(const ShmBinding& target, const Chunk& chunk, Cursor* cursor, std::uint64_t limit, base::CopyHint hint);

/// Cross-memory calls in batches; holds the lists that the kernel reads.
class CrossMover {
 public:
  /// One kernel call of up to `limit` bytes. Returns the bytes moved, or -errno.
  ssize_t move_part(const CrossMemory& memory, const ShmBinding& target, const Chunk& chunk, Cursor* cursor,
                    std::uint64_t limit);

 private:
  struct Batch {
    std::size_t local_count = 0;
    std::size_t remote_count = 0;
  };
  Batch collect(const ShmBinding& target, const Chunk& chunk, Cursor cursor, std::uint64_t limit);

  std::array<iovec, kCrossPiecesMax> local_{};
  std::array<iovec, kCrossPiecesMax> remote_{};
};

/// Moves a cursor on by `size` bytes.
void advance(const Chunk& chunk, Cursor* cursor, std::uint64_t size);

}  // namespace hawser::backend::shm
