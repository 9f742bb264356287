#include "backend/region_table.h"

#include <utility>

#include "base/format.h"
#include "base/planted.h"

namespace hawser::backend {
namespace {

// One text for every reason, so that an answer tells a prober nothing.
Status denied() {
  return Status(Code::kDenied, "no region with this index, key and right is open here")
      .with_scope(Scope::kRequest)
      .with_buffer(BufferState::kUntouched)
      .with_advice("the owner closed the region or the card is old: fetch the peer's card again");
}

}  // namespace

std::optional<SharedFile> shared_file(const RegionEntry& entry) {
  if (entry.arena) {
    return SharedFile{.fd = entry.arena->fd(),
                      .place = static_cast<std::uint64_t>(entry.base - entry.arena->bytes().data())};
  }
  return entry.pages ? entry.pages->file() : std::nullopt;
}

Result<std::shared_ptr<const RegionEntry>> RegionTable::add(RegionEntry entry) {
  base::MutexLock lock(mutex_);
  if (count_ == limit_) {
    return Status(Code::kBusy, base::format("{} regions are registered, which is the limit", limit_))
        .with_advice("raise limits.regions or close regions");
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  if (++slot.generation == 0) slot.generation = 1;  // 0 names nothing
  entry.index = index;
  entry.generation = slot.generation;
  slot.entry = std::make_shared<const RegionEntry>(std::move(entry));
  slot.open = true;
  ++count_;
  return slot.entry;
}

void RegionTable::close(std::uint32_t index, std::uint32_t generation) {
  base::MutexLock lock(mutex_);
  if (index < slots_.size() && slots_[index].generation == generation) slots_[index].open = false;
}

void RegionTable::remove(std::uint32_t index, std::uint32_t generation) {
  std::shared_ptr<const RegionEntry> dying;  // Its arena is unmapped after the lock is released.
  base::MutexLock lock(mutex_);
  if (index >= slots_.size()) return;
  Slot& slot = slots_[index];
  if (slot.generation != generation || slot.entry == nullptr) return;
  dying = std::move(slot.entry);
  slot.entry = nullptr;
  slot.open = false;
  free_.push_back(index);
  --count_;
}

Result<std::shared_ptr<const RegionEntry>> RegionTable::find(std::uint32_t index, std::uint32_t generation,
                                                             const base::Id128& key, Rights right) const {
  base::MutexLock lock(mutex_);
  if (index >= slots_.size()) return denied();
  const Slot& slot = slots_[index];
  if (!slot.open || slot.generation != generation) return denied();
  const bool fits = slot.entry->key == key || base::planted(base::Planted::kKeyUnchecked);
  if (!fits || !allows(slot.entry->rights, right)) return denied();
  return slot.entry;
}

bool RegionTable::is_open(std::uint32_t index, std::uint32_t generation) const {
  base::MutexLock lock(mutex_);
  return index < slots_.size() && slots_[index].open && slots_[index].generation == generation;
}

std::shared_ptr<const RegionEntry> RegionTable::at(std::uint32_t index) const {
  base::MutexLock lock(mutex_);
  return index < slots_.size() ? slots_[index].entry : nullptr;
}

std::vector<std::shared_ptr<const RegionEntry>> RegionTable::all() const {
  base::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const RegionEntry>> found;
  found.reserve(count_);
  for (const Slot& slot : slots_) {
    if (slot.open) found.push_back(slot.entry);
  }
  return found;
}

std::uint32_t RegionTable::count() const {
  base::MutexLock lock(mutex_);
  return count_;
}

}  // namespace hawser::backend
