#include "backend/verbs/memory/mr_cache.h"

#include <algorithm>
#include <utility>

#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

/// Entries that one insertion looks at for something idle to evict. Pinned ones move to the end of the queue meanwhile.
constexpr std::size_t kEvictSteps = 128;

/// Entries before an address that are looked at before all of them are sorted by reach. Where they do not overlap the
/// first or second tells.
constexpr int kNearbySteps = 16;

/// Entries before one that are looked at for bytes in common; beyond there may be some.
constexpr int kOverlapSteps = 128;

/// Searches of one reader in the cache itself before it takes a snapshot.
constexpr int kSearchesMax = 16;

bool serves(const Registration& registration, bool owned, const Access& access) {
  return access.rights == Rights::kNone || (!owned && registration.grants(access));
}

int view_key(const Access& access) {
  if (access.rights == Rights::kNone) return 0;
  return static_cast<int>(access.rights) | (access.relaxed_ordering ? 4 : 0);
}

MrSpan span_of(const Registration& registration, std::uint32_t index) {
  return {.begin = registration.address(),
          .end = registration.end(),
          .iova = registration.iova(),
          .lkey = registration.lkey(),
          .rkey = registration.rkey(),
          .index = index,
          .gpu = static_cast<std::int16_t>(registration.gpu()),
          .node = registration.node()};
}

}  // namespace

Result<std::vector<MemorySource::Made>> HostSource::make(const Wanted& wanted) {
  HAWSER_TRY_ASSIGN(auto made,
                    register_host(domain_, reinterpret_cast<const void*>(wanted.address), wanted.size, wanted.access));
  return std::vector<Made>{{.registration = std::move(made), .generation = wanted.generation}};
}

void MrCache::add(std::shared_ptr<Registration> registration, std::uint64_t generation) {
  const base::MutexLock lock(mutex_);
  insert(registration, generation, true);
}

bool MrCache::remove(const Registration& registration, std::uint64_t* found_before) {
  Dying dying;
  const base::MutexLock lock(mutex_);
  Entry* entry = entry_of(registration);
  if (entry == nullptr) return false;
  const bool is_shared = found_before != nullptr && may_overlap(*entry);
  drop(*entry, &dying);
  if (found_before != nullptr) *found_before = is_shared ? version_.load(std::memory_order_relaxed) : 0;
  return true;
}

bool MrCache::may_overlap(const Entry& entry) const {
  const std::uintptr_t begin = entry.registration->address();
  if (const auto next = std::next(entry.self); next != entries_.end() && next->first < entry.registration->end()) {
    return true;
  }
  auto before = Entries::const_iterator(entry.self);
  for (int steps = 0; before != entries_.begin(); ++steps) {
    --before;
    if (before->second.registration->end() > begin || steps == kOverlapSteps) return true;
    if (begin - before->first >= longest_) break;  // Nor does any before it reach so far.
  }
  return false;
}

Result<MrCache::Registrations> MrCache::acquire(const Wanted& wanted) {
  Pieces pieces;
  {
    const base::MutexLock lock(mutex_);
    pieces = look_up(wanted);
  }
  if (pieces.empty() || !all_fresh(wanted, pieces)) return make_and_keep(wanted);
  const base::MutexLock lock(mutex_);
  ++counters_.hits;
  Registrations found;
  for (Piece& piece : pieces) found.push_back(std::move(piece.registration));
  return found;
}

bool MrCache::all_fresh(const Wanted& wanted, const Pieces& pieces) {
  Dying stale;
  std::uintptr_t at = wanted.address;
  for (const Piece& piece : pieces) {
    // The source is asked without the lock: it may be a driver that is busy.
    const std::uint64_t now = wanted.generation != 0 ? wanted.generation : source_.generation(at);
    at = piece.registration->end();
    const bool vouched = piece.owned && now == 0;
    if (now != piece.generation && !vouched) stale.push_back(piece.registration);
  }
  const base::MutexLock lock(mutex_);
  for (std::size_t i = 0, count = stale.size(); i < count; ++i) {
    ++counters_.stale;
    if (Entry* entry = entry_of(*stale[i])) drop(*entry, &stale);
  }
  return stale.empty();
}

Result<MrCache::Registrations> MrCache::make_and_keep(const Wanted& wanted) {
  {
    const base::MutexLock lock(mutex_);
    ++counters_.misses;
    HAWSER_TRY(known_failure(wanted));
  }
  Result<std::vector<MemorySource::Made>> made = make(wanted);
  Dying dying;
  const base::MutexLock lock(mutex_);
  if (!made) {
    ++counters_.failures;
    remember(wanted, made.error());
    return made.error();
  }
  Registrations kept;
  for (const MemorySource::Made& one : *made) {
    drop_covered_by(*one.registration, wanted.access, &dying);
    insert(one.registration, one.generation, false);
    kept.push_back(one.registration);
  }
  evict(limits_.bytes_max, limits_.count_max, kEvictSteps, &dying);
  return kept;
}

Result<std::vector<MemorySource::Made>> MrCache::make(const Wanted& wanted) {
  Result<std::vector<MemorySource::Made>> made = source_.make(wanted);
  // Locked memory ran out: what is idle here holds some of it.
  if (made || made.error().code() != Code::kBusy || evict_idle() == 0) return made;
  return source_.make(wanted);
}

std::size_t MrCache::invalidate(std::uintptr_t address, std::size_t size) {
  Dying dying;
  const base::MutexLock lock(mutex_);
  const std::uintptr_t end = address + std::min<std::uintptr_t>(size, ~std::uintptr_t{0} - address);
  for (auto next = entries_.begin(); next != entries_.end() && next->first < end;) {
    Entry& entry = (next++)->second;
    if (entry.registration->end() > address) drop(entry, &dying);
  }
  failures_.remove_if([&](const Failure& failure) {
    return failure.wanted.address < end && failure.wanted.address + failure.wanted.size > address;
  });
  return dying.size();
}

std::size_t MrCache::evict_idle() {
  Dying dying;
  const base::MutexLock lock(mutex_);
  return evict(0, 0, entries_.size(), &dying);
}

MrCacheCounters MrCache::counters() const {
  const base::MutexLock lock(mutex_);
  return counters_;
}

MrCache::Pieces MrCache::look_up(const Wanted& wanted) {
  Pieces pieces;
  std::uintptr_t at = wanted.address;
  for (std::size_t left = wanted.size; left > 0;) {
    Entry* entry = covering(at, left, wanted.access);
    if (entry == nullptr) return {};
    if (entry->used.is_linked()) {
      base::IntrusiveList<Entry, &Entry::used>::erase(*entry);
      lru_.push_back(*entry);
    }
    pieces.push_back({entry->registration, entry->generation, entry->owned});
    const std::size_t covered = std::min<std::size_t>(left, entry->registration->end() - at);
    at += covered;
    left -= covered;
  }
  return pieces;
}

MrCache::Entry* MrCache::nearby(std::uintptr_t address, std::size_t size, const Access& access, bool* certain) {
  Entry* best = nullptr;
  auto next = entries_.upper_bound(address);
  for (int steps = 0; next != entries_.begin(); ++steps) {
    if (address - std::prev(next)->first >= longest_) break;  // Nor does any before it reach so far.
    if (steps == kNearbySteps) {
      *certain = false;
      return best;
    }
    Entry& entry = (--next)->second;
    const std::uintptr_t end = entry.registration->end();
    if (end <= address || !serves(*entry.registration, entry.owned, access)) continue;
    if (best == nullptr || end > best->registration->end()) best = &entry;
    if (end - address >= size) break;
  }
  *certain = true;
  return best;
}

MrCache::Entry* MrCache::covering(std::uintptr_t address, std::size_t size, const Access& access) {
  bool certain = false;
  Entry* entry = nearby(address, size, access, &certain);
  if (certain) return entry;
  const View& view = view_for(access);
  const MrSpan* span = view.table.find(address);
  return span != nullptr ? view.entries[span->index] : nullptr;
}

MrSpan MrCache::find_now(std::uintptr_t address, std::size_t size, std::uint64_t* version) {
  const base::MutexLock lock(mutex_);
  *version = version_.load(std::memory_order_relaxed);
  const Entry* entry = covering(address, size, Access{.rights = Rights::kNone});
  return entry != nullptr ? span_of(*entry->registration, 0) : MrSpan{};
}

const MrCache::View& MrCache::view_for(const Access& access) {
  View& view = views_[view_key(access)];
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  if (view.version == version) return view;
  std::vector<MrSpan> spans;
  view.entries.clear();
  for (auto& [address, entry] : entries_) {
    if (!serves(*entry.registration, entry.owned, access)) continue;
    spans.push_back(span_of(*entry.registration, static_cast<std::uint32_t>(view.entries.size())));
    view.entries.push_back(&entry);
  }
  view.table = MrTable(spans);
  view.version = version;
  return view;
}

std::shared_ptr<const MrTable> MrCache::table(std::uint64_t* version) const {
  const base::MutexLock lock(mutex_);
  *version = version_.load(std::memory_order_relaxed);
  if (table_ != nullptr && table_version_ == *version) return table_;
  std::vector<MrSpan> spans;
  spans.reserve(entries_.size());
  for (const auto& [address, entry] : entries_) spans.push_back(span_of(*entry.registration, 0));
  table_ = std::make_shared<const MrTable>(spans);
  table_version_ = *version;
  return table_;
}

void MrCache::insert(const std::shared_ptr<Registration>& registration, std::uint64_t generation, bool owned) {
  const auto place = entries_.emplace(std::piecewise_construct, std::forward_as_tuple(registration->address()),
                                      std::forward_as_tuple());
  Entry& entry = place->second;
  entry.registration = registration;
  entry.generation = generation;
  entry.owned = owned;
  entry.self = place;
  if (!owned) lru_.push_back(entry);
  longest_ = std::max(longest_, registration->size());
  ++counters_.count;
  counters_.bytes += registration->size();
  changed();
}

void MrCache::drop(Entry& entry, Dying* dying) {
  --counters_.count;
  counters_.bytes -= entry.registration->size();
  dying->push_back(std::move(entry.registration));
  entries_.erase(entry.self);
  if (entries_.empty()) longest_ = 0;
  // There may be room now for what failed for lack of it.
  failures_.remove_if([](const Failure& failure) { return failure.status.code() == Code::kBusy; });
  changed();
}

void MrCache::drop_covered_by(const Registration& registration, const Access& access, Dying* dying) {
  auto next = entries_.lower_bound(registration.address());
  while (next != entries_.end() && next->first < registration.end()) {
    Entry& entry = (next++)->second;
    const bool covered = entry.registration->end() <= registration.end();
    if (!entry.owned && covered && entry.registration->grants(access)) drop(entry, dying);
  }
}

std::size_t MrCache::evict(std::uint64_t bytes_max, std::size_t count_max, std::size_t steps, Dying* dying) {
  const std::size_t before = dying->size();
  while (steps-- > 0 && (counters_.bytes > bytes_max || counters_.count > count_max)) {
    Entry* oldest = lru_.pop_front();
    if (oldest == nullptr) break;
    // Copies are made under the lock only, so nobody else can take one of what is ours alone.
    if (oldest->registration.use_count() == 1) {
      ++counters_.evictions;
      drop(*oldest, dying);
    } else {
      lru_.push_back(*oldest);
    }
  }
  return dying->size() - before;
}

MrCache::Entry* MrCache::entry_of(const Registration& registration) {
  const auto [first, last] = entries_.equal_range(registration.address());
  for (auto place = first; place != last; ++place) {
    if (place->second.registration.get() == &registration) return &place->second;
  }
  return nullptr;
}

void MrCache::changed() { version_.fetch_add(1, std::memory_order_release); }

Status MrCache::known_failure(const Wanted& wanted) {
  const Instant now = clock_.now();
  failures_.remove_if([now](const Failure& failure) { return failure.until <= now; });
  for (const Failure& failure : failures_) {
    if (failure.wanted != wanted) continue;
    ++counters_.repeated;
    return failure.status;
  }
  return {};
}

void MrCache::remember(const Wanted& wanted, const Status& status) {
  if (limits_.failures_max == 0) return;
  if (failures_.size() >= limits_.failures_max) failures_.pop_front();
  failures_.push_back({wanted, status, clock_.now() + limits_.failure_ttl});
}

Keys MrReader::search(std::uintptr_t address, std::size_t size) {
  if (version_ != cache_.version_.load(std::memory_order_acquire)) {
    table_.reset();
    searches_ = 0;
  }
  if (table_ == nullptr && searches_ < kSearchesMax) {
    ++searches_;
    last_ = cache_.find_now(address, size, &version_);
  } else {
    if (table_ == nullptr) table_ = cache_.table(&version_);
    const MrSpan* span = table_->find(address);
    last_ = span != nullptr ? *span : MrSpan{};
  }
  if (last_.begin == last_.end) return {};
  const std::uintptr_t offset = address - last_.begin;
  return {.iova = last_.iova + offset,
          .size = std::min<std::uint64_t>(size, last_.end - address),
          .lkey = last_.lkey,
          .rkey = last_.rkey,
          .gpu = last_.gpu,
          .node = last_.node};
}

}  // namespace hawser::backend::verbs
