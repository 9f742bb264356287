#pragma once

// Atomics: what the shared-memory protocols (ring.h, pin.h) need of a machine. They are templates over it, so that a
// test can run them under every interleaving of two threads with store buffers.
//
// Thread rule: any thread, and any process that maps the words.

#include <atomic>
#include <cstdint>

namespace hawser::backend::shm {

struct Atomics {
  using Word = std::atomic<std::uint64_t>;
  using GateWord = std::atomic<std::uint32_t>;

  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
  /// Orders for the compiler only; the other side pays with a membarrier.
  static void light_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }
};

// A lock that a dead process holds would be held for ever.
static_assert(Atomics::Word::is_always_lock_free && sizeof(Atomics::Word) == 8);
static_assert(Atomics::GateWord::is_always_lock_free && sizeof(Atomics::GateWord) == 4);

}  // namespace hawser::backend::shm
