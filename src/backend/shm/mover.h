#pragma once

// CrossMover: moves the bytes of a chunk by cross-memory calls, in batches of many pieces.
//
// Thread rule: one thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/chunk_copy.h"
#include "backend/shm/binding.h"
#include "backend/shm/cross_memory.h"

namespace hawser::backend::shm {

/// Holds the lists that the kernel reads.
class CrossMover {
 public:
  /// One kernel call of up to `limit` bytes. Returns the bytes moved, or -errno.
  ssize_t move_part(const CrossMemory& memory, const ShmBinding& target, const Chunk& chunk, Cursor* cursor,
                    std::uint64_t limit);

  /// Moves what an admitted chunk wants of the target's ends. Returns 0, or -errno.
  int move_ends(const CrossMemory& memory, const ShmBinding& target, const Chunk& chunk);

 private:
  struct Batch {
    std::size_t local_count = 0;
    std::size_t remote_count = 0;
  };
  /// Moves the first `count` pairs, whole.
  int move_pairs(const CrossMemory& memory, Operation op, std::size_t count);
  Batch collect(const ShmBinding& target, const Chunk& chunk, Cursor cursor, std::uint64_t limit);

  std::array<iovec, kCrossPiecesMax> local_{};
  std::array<iovec, kCrossPiecesMax> remote_{};
};

}  // namespace hawser::backend::shm
