#pragma once

// SingleUse: what the owner knows of a grant that is for one transfer. The first transfer that a target serves by it is
// the only one, however many chunks it has and over however many paths they come.
//
// Thread rule: thread-safe.

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

 private:
  base::Mutex mutex_;
  std::optional<std::pair<base::Id128, std::uint64_t>> first_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::backend
