#pragma once

// GpuRegistrations: what one port registered of GPU memory, shared by the regions that lie in it.
//
// A GPU's memory is registered by whole allocations, so regions in one allocation share its registration, which ends
// with the last of them. Where the allocator tells its segments, regions share a segment's key; those live as long as
// their segment does (segments.h).
//
// Thread rule: thread-safe. `acquire` may wait for the allocator's provider; `release` never does.
// Lifetime: holds its Nic, and the registrations in use.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "backend/verbs/devices/nic.h"
#include "backend/verbs/gpu/segments.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

class GpuRegistrations {
 public:
  /// `provider` may be empty; segments are registered for `segment_access`, which is what regions mostly want. `keys`
  /// may be null.
  GpuRegistrations(std::shared_ptr<Nic> nic, hawser::SegmentProvider provider, std::unique_ptr<IndirectKeys> keys,
                   const Access& segment_access);

  /// One registration that covers the range, listed in the port's cache. Errors: GpuMemory::make_one's.
  Result<std::shared_ptr<Registration>> acquire(const Wanted& wanted) HAWSER_EXCLUDES(making_, mutex_);
  /// Of what acquire gave, once for each time. `found_before`: as of MrCache::remove.
  void release(const Registration& registration, std::uint64_t* found_before = nullptr) HAWSER_EXCLUDES(mutex_);
  /// Registrations that regions use now.
  std::size_t count() const HAWSER_EXCLUDES(mutex_);
  /// Of the segments; all zero where there is no provider.
  SegmentReport segments() const;

 private:
  struct Shared {
    std::shared_ptr<Registration> registration;
    std::uint64_t generation = 0;
    std::size_t users = 0;
  };

  std::shared_ptr<Registration> find(const Wanted& wanted) HAWSER_EXCLUDES(mutex_);
  void adopt(const std::shared_ptr<Registration>& registration, std::uint64_t generation) HAWSER_EXCLUDES(mutex_);
  Result<std::vector<Segment>> ask(const hawser::SegmentProvider& provider);

  const std::shared_ptr<Nic> nic_;
  const std::unique_ptr<IndirectKeys> keys_;
  std::unique_ptr<SegmentTable> segments_;  ///< Null: nobody tells them.
  /// Taken before mutex_: so that two regions in one allocation do not register it twice.
  base::Mutex making_;
  std::set<int> gpus_;  ///< Those whose memory was asked for: other GPUs' segments are left alone. Under making_.
  mutable base::Mutex mutex_;
  std::multimap<std::uintptr_t, Shared> shared_ HAWSER_GUARDED_BY(mutex_);  ///< By address.
};

}  // namespace hawser::backend::verbs
