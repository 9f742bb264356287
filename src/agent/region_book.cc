#include "agent/region_book.h"

#include <utility>

namespace hawser::agent {

RegionBook::Place* RegionBook::find(const backend::RegionId& id) {
  if (id.index >= places_.size()) return nullptr;
  Place& place = places_[id.index];
  return place.entry != nullptr && place.entry->generation == id.generation ? &place : nullptr;
}

void RegionBook::add(const std::shared_ptr<LocalRegion>& region) {
  const std::uint32_t index = region->entry->index;
  const base::MutexLock lock(mutex_);
  if (index >= places_.size()) places_.resize(index + 1);
  places_[index] = {.entry = region->entry, .region = region, .is_open = true};
  areas_.add(region->entry);
}

void RegionBook::close(std::span<const backend::RegionId> ids) {
  const base::MutexLock lock(mutex_);
  for (const backend::RegionId& id : ids) {
    Place* const place = find(id);
    if (place == nullptr) continue;
    place->is_open = false;
    areas_.remove(*place->entry);
  }
}

void RegionBook::remove(std::span<const backend::RegionId> ids) {
  const base::MutexLock lock(mutex_);
  for (const backend::RegionId& id : ids) {
    // The region and the table refer to the entry for longer, so nothing is freed here.
    Place* const place = find(id);
    if (place == nullptr) continue;
    areas_.remove(*place->entry);
    *place = {};
  }
}

template <typename Wants>
RegionBook::Regions RegionBook::chosen(Wants wants) const {
  Regions regions;
  const base::MutexLock lock(mutex_);
  for (const Place& place : places_) {
    if (!wants(place)) continue;
    if (auto region = place.region.lock()) regions.push_back(std::move(region));
  }
  return regions;
}

RegionBook::Regions RegionBook::all() const {
  return chosen([](const Place&) { return true; });
}

RegionBook::Regions RegionBook::open() const {
  return chosen([](const Place& place) { return place.is_open; });
}

RegionBook::Entries RegionBook::open_entries() const {
  Entries entries;
  const base::MutexLock lock(mutex_);
  for (const Place& place : places_) {
    if (place.is_open) entries.push_back(place.entry);
  }
  return entries;
}

std::shared_ptr<const backend::RegionEntry> RegionBook::mapped(std::span<const std::byte> bytes) const {
  const base::MutexLock lock(mutex_);
  return areas_.find(bytes);
}

}  // namespace hawser::agent
