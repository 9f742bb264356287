#include "agent/arena_book.h"

#include <algorithm>

#include "backend/region_table.h"

namespace hawser::agent {

void ArenaBook::note(const std::shared_ptr<backend::Arena>& arena) {
  const base::MutexLock lock(mutex_);
  if (arenas_.size() >= most_) {
    std::erase_if(arenas_, [](const auto& each) { return each.second.expired(); });
    most_ = std::max(kFew, 2 * arenas_.size());
  }
  arenas_.insert_or_assign(reinterpret_cast<std::uintptr_t>(arena->bytes().data()), arena);
}

std::shared_ptr<backend::Arena> ArenaBook::find(std::span<const std::byte> bytes, Rights rights) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::shared_ptr<backend::Arena> arena;  // Let go without the lock: it may be the last reference.
  const base::MutexLock lock(mutex_);
  for (auto place = arenas_.upper_bound(begin); place != arenas_.begin();) {
    --place;
    arena = place->second.lock();
    if (!arena) {
      place = arenas_.erase(place);
      continue;
    }
    const bool is_inside = backend::in_bounds(begin - place->first, bytes.size(), arena->bytes().size());
    const bool fits = !allows(rights, Rights::kWrite) || !arena->is_read_only();
    return is_inside && fits ? arena : nullptr;  // Those that live do not overlap.
  }
  return nullptr;
}

std::size_t ArenaBook::size() const {
  const base::MutexLock lock(mutex_);
  return arenas_.size();
}

}  // namespace hawser::agent
