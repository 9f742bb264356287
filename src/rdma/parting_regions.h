#pragma once

// PartingRegions: regions that do not close at once, with the memory's owners. A device may take its time to forget a
// region, and operations on the same memory may go by its key: who lets the memory go does not wait for that.
//
// Thread rule: thread-safe. Lifetime: an engine's; memory that outlives it closes its regions itself.

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <hawser/memory.h>
#include <hawser/time.h>

#include "base/mutex.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class PartingRegions {
 public:
  /// `wake`: something has to be looked at from now on. It is called under the lock, and not after end().
  explicit PartingRegions(std::function<void()> wake) : wake_(std::move(wake)) {}

  /// Takes a region that does not close yet, and lets `owner` go once it has. False: nobody looks any more.
  bool take(Region& region, std::shared_ptr<const void> owner) HAWSER_EXCLUDES(mutex_);
  /// Whether some have closed.
  bool look() HAWSER_EXCLUDES(mutex_);
  bool empty() const HAWSER_EXCLUDES(mutex_);
  /// Waits until all have closed, and takes no more. The memory of those that have not by then stays for ever.
  void end(Instant until) HAWSER_EXCLUDES(mutex_);

 private:
  struct Parting {
    Region region;
    std::shared_ptr<const void> owner;
  };

  const std::function<void()> wake_;
  mutable base::Mutex mutex_;
  std::vector<Parting> all_ HAWSER_GUARDED_BY(mutex_);
  bool is_over_ HAWSER_GUARDED_BY(mutex_) = false;
};

/// For all that is still in use when a backend ends, together.
inline constexpr Duration kPartingPatience = std::chrono::seconds(5);

/// Closes the region now or by `keeper`; where that has ended, it waits.
void part(Region& region, const std::weak_ptr<PartingRegions>& keeper, std::shared_ptr<const void> owner);

}  // namespace rdma
HAWSER_NAMESPACE_END
