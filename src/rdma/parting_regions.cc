#include "rdma/parting_regions.h"

#include <algorithm>
#include <iterator>

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

/// Where the region does not close: for good. Somebody may still touch the memory, so its owner must never go.
void keep_for_ever(std::shared_ptr<const void> owner) {
  if (owner) (void)new std::shared_ptr<const void>(std::move(owner));
}

}  // namespace

void part(Region& region, const std::weak_ptr<PartingRegions>& keeper, std::shared_ptr<const void> owner) {
  if (region.close(Duration::zero()).ok()) return;
  const std::shared_ptr<PartingRegions> its = keeper.lock();
  if (its != nullptr && its->take(region, owner)) return;
  if (!region.close(kPartingPatience).ok()) keep_for_ever(std::move(owner));
}

bool PartingRegions::take(Region& region, std::shared_ptr<const void> owner) {
  const base::MutexLock lock(mutex_);
  if (is_over_) return false;
  all_.push_back({.region = std::move(region), .owner = std::move(owner)});
  wake_();  // Under the lock: who is woken is there until end() has had it.
  return true;
}

bool PartingRegions::empty() const {
  const base::MutexLock lock(mutex_);
  return all_.empty();
}

bool PartingRegions::look() {
  std::vector<Parting> some;
  {
    const base::MutexLock lock(mutex_);
    some.swap(all_);
  }
  if (some.empty()) return false;
  const bool moved = std::erase_if(some, [](Parting& each) { return each.region.close(Duration::zero()).ok(); }) > 0;
  const base::MutexLock lock(mutex_);
  std::ranges::move(some, std::back_inserter(all_));
  return moved;
}

void PartingRegions::end(Instant until) {
  std::vector<Parting> rest;
  {
    const base::MutexLock lock(mutex_);
    is_over_ = true;
    rest.swap(all_);
  }
  for (Parting& each : rest) {
    const Duration left = std::max(Duration::zero(), until - Clock::steady().now());
    if (!each.region.close(left).ok()) keep_for_ever(std::move(each.owner));
  }
}

}  // namespace rdma
HAWSER_NAMESPACE_END
