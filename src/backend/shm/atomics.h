#pragma once

// Atomics: what the shared-memory protocols (ring.h, pin.h) need of a machine. They are templates over it, so that a
// test can run them under every interleaving of two threads with store buffers.
//
// Thread rule: any thread, and any process that maps the words.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/copy.h"

namespace hawser::backend::shm {

struct Atomics {
  using Word = std::atomic<std::uint64_t>;
  using GateWord = std::atomic<std::uint32_t>;

  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
  /// Orders for the compiler only; the other side pays with a membarrier.
  static void light_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

  static constexpr std::size_t kRunMin = 512;  ///< See ring.h.
  /// For smaller runs it is not asked whether the other side is behind: it takes a look at a line that it writes.
  static constexpr std::size_t kAsksMin = base::kStreamLaterMin;

  /// Bytes into words, from the byte `offset` on, and back. Only an acquired header makes them visible; a hostile peer
  /// that writes meanwhile spoils its own message.
  ///
  /// `is_read_later`: the other side still reads what was written before. True: a stream_fence() is due.
  static bool copy_in(Word* words, std::size_t offset, const std::byte* from, std::size_t size, bool is_read_later) {
    return base::kernels().copy({reinterpret_cast<std::byte*>(words) + offset, from, size},
                                {.read_elsewhere = true, .read_later = is_read_later});
  }
  static void stream_fence() { base::stream_fence(); }
  static void copy_out(const Word* words, std::size_t offset, std::byte* to, std::size_t size) {
    base::copy_cached(to, reinterpret_cast<const std::byte*>(words) + offset, size);
  }
};

// A lock that a dead process holds would be held for ever.
static_assert(Atomics::Word::is_always_lock_free && sizeof(Atomics::Word) == 8);
static_assert(Atomics::GateWord::is_always_lock_free && sizeof(Atomics::GateWord) == 4);

}  // namespace hawser::backend::shm
