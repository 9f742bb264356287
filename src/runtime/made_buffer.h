#pragma once

// MadeBuffer: memory that was made for one message, because its receiver gave none. BufferSource: where a world gets
// it, from a pool or from the heap, and how much of it is held.
//
// Thread rule: thread-safe. Lifetime: buffers may outlive their source.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <hawser/buffer_pool.h>
#include <hawser/status.h>

namespace hawser::runtime {

/// Gives a buffer back to where it came from.
class BufferReturn {
 public:
  /// To the heap.
  BufferReturn() = default;
  void operator()(std::byte* bytes) const;

 private:
  friend class BufferSource;
  std::shared_ptr<PoolCore> pool_;  ///< Null: to the heap,
  std::size_t tier_ = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> held_;  ///< which counts it.
  std::size_t bytes_ = 0;
};

using MadeBuffer = std::unique_ptr<std::byte[], BufferReturn>;

class BufferSource {
 public:
  explicit BufferSource(BufferPool pool = {}) : pool_(std::move(pool)) {}

  /// kBusy: there is no memory, or the pool refuses what is beyond it.
  Result<MadeBuffer> make(std::size_t bytes) const;
  const BufferPool& pool() const { return pool_; }
  /// Bytes of its buffers from the heap that are in use.
  std::uint64_t held() const { return held_->load(std::memory_order_relaxed); }

 private:
  BufferPool pool_;
  std::shared_ptr<std::atomic<std::uint64_t>> held_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// From the heap, counted nowhere. Null: there is no memory.
MadeBuffer heap_buffer(std::size_t bytes);

}  // namespace hawser::runtime
