#include "backend/region_table.h"

#include <utility>

#include "base/format.h"
#include "base/planted.h"
#include "base/small_vector.h"
#include "base/try.h"

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

Status RegionTable::add(std::span<const std::shared_ptr<RegionEntry>> entries) {
  base::MutexLock lock(mutex_);
  if (entries.size() > limit_ - count_) {
    return Status(Code::kBusy, base::format("{} regions are registered, and {} is the limit", count_, limit_))
        .with_advice("raise limits.regions or close regions");
  }
  for (const auto& entry : entries) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    entry->index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[entry->index];
    if (++slot.generation == 0) slot.generation = 1;  // 0 names nothing
    entry->generation = slot.generation;
    slot.entry = entry;
    slot.open = true;
  }
  count_ += static_cast<std::uint32_t>(entries.size());
  return {};
}

Result<std::shared_ptr<const RegionEntry>> RegionTable::add(RegionEntry entry) {
  const auto made = std::make_shared<RegionEntry>(std::move(entry));
  HAWSER_TRY(add(std::span(&made, 1)));
  return std::shared_ptr<const RegionEntry>(made);
}

RegionTable::Slot* RegionTable::find(RegionId id) {
  if (id.index >= slots_.size() || slots_[id.index].generation != id.generation) return nullptr;
  return &slots_[id.index];
}

void RegionTable::close(std::span<const RegionId> ids) {
  base::MutexLock lock(mutex_);
  for (const RegionId& id : ids) {
    if (Slot* const slot = find(id)) slot->open = false;
  }
}

void RegionTable::remove(std::span<const RegionId> ids) {
  base::SmallVector<std::shared_ptr<const RegionEntry>, 4> dying;  // Arenas are unmapped after the lock is released.
  dying.reserve(ids.size());
  base::MutexLock lock(mutex_);
  for (const RegionId& id : ids) {
    Slot* const slot = find(id);
    if (slot == nullptr || slot->entry == nullptr) continue;
    dying.push_back(std::move(slot->entry));
    slot->entry = nullptr;
    slot->open = false;
    free_.push_back(id.index);
    --count_;
  }
}

std::vector<std::shared_ptr<const RegionEntry>> RegionTable::all() const {
  const base::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const RegionEntry>> found;
  found.reserve(count_);
  for (const Slot& slot : slots_) {
    if (slot.open) found.push_back(slot.entry);
  }
  return found;
}

Result<std::shared_ptr<const RegionEntry>> RegionTable::find(std::uint32_t index, std::uint32_t generation,
                                                             const base::Id128& key, Rights right,
                                                             const base::Id128& peer) const {
  base::MutexLock lock(mutex_);
  if (index >= slots_.size()) return denied();
  const Slot& slot = slots_[index];
  if (!slot.open || slot.generation != generation) return denied();
  const bool fits = slot.entry->key == key || base::planted(base::Planted::kKeyUnchecked);
  if (!fits || !allows(slot.entry->rights, right)) return denied();
  const base::Id128& holder = slot.entry->holder;
  const bool is_holder = holder.is_zero() || holder == peer || base::planted(base::Planted::kHolderUnchecked);
  if (!is_holder) return denied();
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

std::uint32_t RegionTable::room() const {
  base::MutexLock lock(mutex_);
  return limit_ - count_;
}

std::uint32_t RegionTable::count() const {
  base::MutexLock lock(mutex_);
  return count_;
}

base::Id128 only_holder(const RegionTable& table, const RegionId& id) {
  const std::shared_ptr<const RegionEntry> entry = table.at(id.index);
  return entry != nullptr && entry->generation == id.generation ? entry->holder : base::Id128{};
}

}  // namespace hawser::backend
