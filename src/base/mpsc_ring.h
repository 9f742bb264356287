#pragma once

// MpscRing: a bounded queue from any number of producers to one consumer, without locks. A full ring refuses; the
// producer answers kBusy. It takes memory from the first push on: most rings of idle agents are never used.
//
// Thread rule: try_push from any thread; try_pop and empty from the consumer only (one thread at a time). A producer
// that is stopped between its two steps holds back what was pushed after it, never loses it: so ring the consumer's
// doorbell after try_push returned.
// Lifetime: no call may run while the ring is destroyed; what is still inside is destroyed with it.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

#include <hawser/time.h>

#include "base/check.h"
#include "base/spin.h"

namespace hawser::base {

template <typename T>
class MpscRing {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

 public:
  /// `capacity` is a power of two of at least 2.
  explicit MpscRing(std::size_t capacity) : mask_(capacity - 1) {
    HAWSER_ASSERT(capacity >= 2 && std::has_single_bit(capacity), "the capacity of a ring is a power of two");
  }
  ~MpscRing() {
    while (Cell* cell = front()) discard(cell);
    delete[] cells_.load(std::memory_order_relaxed);
  }
  MpscRing(const MpscRing&) = delete;
  MpscRing& operator=(const MpscRing&) = delete;

  /// False when full; `value` is then untouched.
  bool try_push(T&& value) {
    Cell* cells = cells_.load(std::memory_order_acquire);
    if (cells == nullptr) [[unlikely]]
      cells = make_cells();
    std::size_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells[at & mask_];
      // A cell's turn is its position when it is free for it, and one more when it is filled.
      const auto lag = static_cast<std::ptrdiff_t>(cell.turn.load(std::memory_order_acquire) - at);
      if (lag < 0) return false;
      if (lag > 0) {
        at = tail_.load(std::memory_order_relaxed);
      } else if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
        ::new (static_cast<void*>(cell.storage)) T(std::move(value));
        cell.turn.store(at + 1, std::memory_order_release);
        return true;
      }
    }
  }

  /// False when empty; `value` is then untouched.
  bool try_pop(T& value) {
    Cell* cell = front();
    if (cell == nullptr) return false;
    value = std::move(*cell->value());
    discard(cell);
    return true;
  }

  bool empty() const { return front() == nullptr; }
  /// All pushes that have begun by now are before it: for holds_before. Any thread.
  std::size_t end() const { return tail_.load(std::memory_order_acquire); }
  /// Something that was pushed before `end` is still inside. If nothing can be popped then, a producer is stopped
  /// between its two steps, and others' values may lie behind that.
  bool holds_before(std::size_t end) const { return static_cast<std::ptrdiff_t>(end - head_) > 0; }
  /// Waits until there is something to pop. False: the producer was not done within `patience`.
  bool await_front(Duration patience) const {
    for (const Instant end = Clock::steady().now() + patience; front() == nullptr;) {
      if (Clock::steady().now() >= end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  std::size_t capacity() const { return mask_ + 1; }

 private:
  struct Cell {
    std::atomic<std::size_t> turn;
    alignas(T) std::byte storage[sizeof(T)];
    T* value() { return std::launder(reinterpret_cast<T*>(storage)); }
  };

  /// Producers that are first at once each make some; one wins.
  [[gnu::cold, gnu::noinline]] Cell* make_cells() {
    std::unique_ptr<Cell[]> made(new Cell[mask_ + 1]);
    for (std::size_t i = 0; i <= mask_; ++i) made[i].turn.store(i, std::memory_order_relaxed);
    Cell* found = nullptr;
    if (!cells_.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return found;
    return made.release();
  }
  Cell* front() const {
    Cell* const cells = cells_.load(std::memory_order_acquire);
    if (cells == nullptr) return nullptr;
    Cell& cell = cells[head_ & mask_];
    return cell.turn.load(std::memory_order_acquire) == head_ + 1 ? &cell : nullptr;
  }
  void discard(Cell* cell) {
    std::destroy_at(cell->value());
    cell->turn.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
  }

  const std::size_t mask_;
  std::atomic<Cell*> cells_{nullptr};
  alignas(kCacheLine) std::atomic<std::size_t> tail_{0};
  alignas(kCacheLine) std::size_t head_ = 0;
};

}  // namespace hawser::base
