#include "backend/verbs/gpu/regions_gpu.h"

#include <utility>

#include "base/try.h"

namespace hawser::backend::verbs {

GpuRegistrations::GpuRegistrations(std::shared_ptr<Nic> nic, hawser::SegmentProvider provider,
                                   std::unique_ptr<IndirectKeys> keys, const Access& segment_access)
    : nic_(std::move(nic)), keys_(std::move(keys)) {
  if (!provider || nic_->gpus == nullptr) return;
  segments_ = std::make_unique<SegmentTable>(
      nic_->domain, *nic_->gpus, [this, provider = std::move(provider)] { return ask(provider); }, keys_.get(),
      segment_access);
}

Result<std::vector<Segment>> GpuRegistrations::ask(const hawser::SegmentProvider& provider) {
  HAWSER_TRY_ASSIGN(const std::vector<MemorySegment> told, provider());
  std::vector<Segment> segments;
  for (const MemorySegment& each : told) {
    const bool wanted = each.device.kind == DeviceKind::kCuda && gpus_.contains(static_cast<int>(each.device.ordinal));
    const auto begin = reinterpret_cast<std::uintptr_t>(each.bytes.data());
    if (wanted) segments.push_back({.range = {begin, begin + each.bytes.size()}, .generation = each.generation});
  }
  return segments;
}

std::shared_ptr<Registration> GpuRegistrations::find(const Wanted& wanted) {
  // An address may lie in both: segments have generations of their own, and do not serve all rights.
  const std::uint64_t of_segment = segments_ != nullptr ? segments_->generation(wanted.address) : 0;
  const std::uint64_t of_allocation = nic_->memory.generation(wanted.address);
  const base::MutexLock lock(mutex_);
  const auto after = shared_.upper_bound(wanted.address);
  if (after == shared_.begin()) return nullptr;
  const auto [first, last] = shared_.equal_range(std::prev(after)->first);
  for (auto place = first; place != last; ++place) {
    Shared& shared = place->second;
    const bool is_segment = (shared.generation & kSegmentGeneration) != 0;
    const bool fits = shared.generation == (is_segment ? of_segment : of_allocation) &&
                      shared.registration->grants(wanted.access) &&
                      shared.registration->covers(wanted.address, wanted.size);
    if (!fits) continue;
    ++shared.users;
    return shared.registration;
  }
  return nullptr;
}

void GpuRegistrations::adopt(const std::shared_ptr<Registration>& registration, std::uint64_t generation) {
  {
    const base::MutexLock lock(mutex_);
    const auto [first, last] = shared_.equal_range(registration->address());
    for (auto place = first; place != last; ++place) {
      if (place->second.registration != registration) continue;
      ++place->second.users;
      return;
    }
    shared_.emplace(registration->address(), Shared{registration, generation, 1});
  }
  nic_->cache.add(registration, generation);
}

Result<std::shared_ptr<Registration>> GpuRegistrations::acquire(const Wanted& wanted) {
  const base::MutexLock making(making_);
  if (auto found = find(wanted)) return found;
  if (segments_ != nullptr && segments_->access() == wanted.access) {
    HAWSER_TRY_ASSIGN(const PointerFacts facts, classify(nic_->gpus.get(), wanted.address));
    if (facts.on_gpu()) gpus_.insert(facts.ordinal);
    const SegmentTable::Found segment = segments_->find(wanted.address, wanted.size);
    if (segment.registration != nullptr) {
      adopt(segment.registration, segment.generation);
      return segment.registration;
    }
  }
  HAWSER_TRY_ASSIGN(const MemorySource::Made made, nic_->memory.make_one(wanted));
  adopt(made.registration, made.generation);
  return made.registration;
}

void GpuRegistrations::release(const Registration& registration, std::uint64_t* found_before) {
  std::shared_ptr<Registration> dying;  // Deregistered after the lock is released.
  {
    const base::MutexLock lock(mutex_);
    const auto [first, last] = shared_.equal_range(registration.address());
    auto place = first;
    while (place != last && place->second.registration.get() != &registration) ++place;
    if (place == last || --place->second.users > 0) return;
    dying = std::move(place->second.registration);
    shared_.erase(place);
  }
  nic_->cache.remove(*dying, found_before);
}

std::size_t GpuRegistrations::count() const {
  const base::MutexLock lock(mutex_);
  return shared_.size();
}

SegmentReport GpuRegistrations::segments() const {
  return segments_ != nullptr ? segments_->report() : SegmentReport{};
}

}  // namespace hawser::backend::verbs
