#pragma once

// Gates: one word per region that peers can read: the generation that is open, or 0. A peer that copies by itself looks
// at it under its pin (pin.h); shutting it is what revokes a region from those who mapped it.
//
// The memory file has its full size from the beginning, so a peer maps it once; its pages are taken as regions come.
//
// Thread rule: Gates is thread-safe; a PeerGates may be read by any thread. Lifetime: a PeerGates maps the file itself.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include <hawser/status.h>

#include "backend/region_table.h"
#include "backend/shm/atomics.h"
#include "backend/shm/fork_list.h"
#include "backend/shm/mapping.h"
#include "base/mutex.h"

namespace hawser::backend::shm {

/// The most regions that shm serves for one agent; others are reached another way.
inline constexpr std::uint32_t kGateCount = 1u << 20;
inline constexpr std::size_t kGateBytes = std::size_t{kGateCount} * sizeof(std::uint32_t);

class Gates {
 public:
  /// `membarrier`: register this process for it where the kernel can.
  static Result<std::unique_ptr<Gates>> make(ForkList& forks, bool membarrier);
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  Status open(std::uint32_t index, std::uint32_t generation);
  /// Afterwards every initiator that enters sees them shut, and the pin of each that entered before can be seen: one
  /// barrier for all. Idempotent. `others`: whether there is any initiator at all.
  void shut(std::span<const RegionId> ids, bool others);
  /// For peers: the file, to be read only.
  int peer_fd() const { return peer_fd_.get(); }
  /// Whether this process is registered for membarrier and shut() uses it.
  bool has_membarrier() const { return has_membarrier_; }
  /// How often shut() paid for a barrier.
  std::uint64_t barriers() const { return barriers_.load(std::memory_order_relaxed); }

 private:
  Gates() = default;
  Status reserve(std::uint32_t index) HAWSER_REQUIRES(mutex_);
  Atomics::GateWord* words() const { return reinterpret_cast<Atomics::GateWord*>(mapping_.base()); }

  ForkFd fd_;
  ForkFd peer_fd_;
  Mapping mapping_;
  bool has_membarrier_ = false;
  std::atomic<std::uint64_t> barriers_{0};
  base::Mutex mutex_;
  std::uint32_t reserved_ HAWSER_GUARDED_BY(mutex_) = 0;  ///< Words whose pages are there.
};

/// A peer's gates.
class PeerGates {
 public:
  PeerGates() = default;
  static Result<PeerGates> map(int fd);
  /// Null for an index that a peer cannot have.
  const Atomics::GateWord* at(std::uint32_t index) const {
    return index < kGateCount ? reinterpret_cast<const Atomics::GateWord*>(mapping_.base()) + index : nullptr;
  }

 private:
  Mapping mapping_;
};

}  // namespace hawser::backend::shm
