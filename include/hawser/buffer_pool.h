#pragma once

// A BufferPool keeps the buffers of receives that are given none (World::ireceive_any_size), so that they need no new
// memory each time. Several worlds may share one: pass it in WorldOptions::pool.
//
// It has tiers, each a number of buffers of one size. A message takes a buffer of the smallest tier that it fits in and
// that has one left. The pool makes a buffer when it is first needed, keeps it, and gets it back when the request goes.
// So its memory is bounded by its tiers. A message that finds no buffer gets ordinary memory, which is freed with its
// request, or, with Beyond::kRefuse, the receive ends with kBusy and the message stays first. Buffers are not cleared.
//
// Thread rule: thread-safe. Lifetime: copies share one pool, which lives as long as any of them and any of its buffers.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hawser/export.h>
#include <hawser/status.h>

namespace hawser::runtime {
class PoolCore;
}  // namespace hawser::runtime

HAWSER_NAMESPACE_BEGIN

class HAWSER_API BufferPool {
 public:
  struct Tier {
    std::size_t bytes = 0;  ///< Each buffer has so many.
    std::uint32_t count = 0;
  };
  /// What happens to a message that finds no buffer.
  enum class Beyond : std::uint8_t {
    kAllocate,  ///< It gets ordinary memory.
    kRefuse,    ///< Its receive ends with kBusy.
  };
  struct TierStatistics {
    std::size_t bytes = 0;        ///< Each buffer has so many.
    std::uint32_t count = 0;      ///< How many there may be,
    std::uint32_t made = 0;       ///< have been made,
    std::uint32_t used = 0;       ///< are in use now,
    std::uint32_t most_used = 0;  ///< and were in use at once at most.
    std::uint64_t taken = 0;      ///< How often one was taken.
  };
  struct Statistics {
    std::vector<TierStatistics> tiers;  ///< From the smallest.
    std::uint64_t bytes = 0;            ///< All buffers together that have been made.
    std::uint64_t beyond = 0;           ///< Messages that found no buffer.
  };
  static constexpr std::size_t kTiersMax = 16;

  /// Empty: no pool.
  BufferPool() = default;
  /// 256 buffers of 64 KiB, 32 of 8 MiB, 16 of 64 MiB and 4 of 256 MiB, for gradients and checkpoints.
  static BufferPool training();
  /// 256 buffers of 64 KiB, 16 of 8 MiB and 4 of 64 MiB, for activations and caches.
  static BufferPool inference();
  /// Tiers of one's own, 1 to kTiersMax, each of another size. kInvalid: there are none, or too many, two of one size,
  /// or a size or a number is 0, or a size is above 1 GiB.
  static Result<BufferPool> with_tiers(std::span<const Tier> tiers, Beyond beyond = Beyond::kAllocate);

  bool valid() const { return core_ != nullptr; }
  Statistics statistics() const;
  /// Frees the buffers that nobody uses. They are made again when they are needed.
  void trim();

 private:
  friend struct Inside;
  explicit BufferPool(std::shared_ptr<runtime::PoolCore> core) : core_(std::move(core)) {}
  std::shared_ptr<runtime::PoolCore> core_;
};

HAWSER_NAMESPACE_END
