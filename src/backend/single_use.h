#pragma once

// SingleUse: what the owner knows of a grant that is for one transfer. The first transfer that a target serves by it is
// the only one, however many chunks it has and over however many paths they come. Where the target sees no transfers,
// the holder's word that its transfer is over is kept here.
//
// Thread rule: thread-safe.

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/id128.h"
#include "base/mutex.h"

namespace hawser::backend {

class SingleUse {
 public:
  /// Whether this transfer may use the grant. `transfer` is unique within the initiator's incarnation.
  bool admits(const base::Id128& initiator, std::uint64_t transfer) {
    const base::MutexLock lock(mutex_);
    if (!first_) first_.emplace(initiator, transfer);
    return *first_ == std::pair(initiator, transfer);
  }

  /// The only peer that may use the grant has said that its transfer is over. What that peer's library did by the grant
  /// happened before, and it begins nothing more. A peer that lies is none that could be kept out: see docs/grants.md.
  void note_over() { is_over_.store(true, std::memory_order_release); }
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_over_{false};
  base::Mutex mutex_;
  std::optional<std::pair<base::Id128, std::uint64_t>> first_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::backend
