#pragma once

// PoolCore: the buffers of a BufferPool (hawser/buffer_pool.h).
//
// Thread rule: thread-safe. Memory: its tiers, as they are needed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hawser/buffer_pool.h>

#include "base/mutex.h"

namespace hawser::runtime {

class PoolCore {
 public:
  /// `tiers` are from the smallest, each of another size.
  PoolCore(std::vector<BufferPool::Tier> tiers, BufferPool::Beyond beyond);

  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t tier = 0;
  };
  /// One of at least so many bytes. None: all that are large enough are in use, or there is no memory.
  std::optional<Buffer> take(std::size_t bytes);
  /// Of that tier.
  void give_back(Buffer buffer);
  BufferPool::Beyond beyond() const { return beyond_; }
  /// The largest of its buffers.
  std::size_t largest() const { return largest_; }

  BufferPool::Statistics statistics() const;
  void trim();

 private:
  struct Tier {
    BufferPool::TierStatistics counts;
    std::vector<std::unique_ptr<std::byte[]>> free;
  };
  static std::optional<Buffer> take_of(Tier& tier, std::size_t place);

  const BufferPool::Beyond beyond_;
  std::size_t largest_ = 0;
  mutable base::Mutex mutex_;
  std::vector<Tier> tiers_ HAWSER_GUARDED_BY(mutex_);
  std::uint64_t beyond_count_ HAWSER_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::runtime
