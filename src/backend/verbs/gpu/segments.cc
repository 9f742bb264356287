#include "backend/verbs/gpu/segments.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {

SegmentTable::Found SegmentTable::find(std::uintptr_t address, std::size_t size) {
  Found found = look_up(address, size);
  if (found.registration != nullptr) return found;
  const base::MutexLock lock(sync_mutex_);
  sync_locked();
  return look_up(address, size);
}

void SegmentTable::sync() {
  const base::MutexLock lock(sync_mutex_);
  sync_locked();
}

std::shared_ptr<const SegmentTable::Entries> SegmentTable::entries() const {
  const base::MutexLock lock(mutex_);
  return entries_;
}

SegmentReport SegmentTable::report() const {
  const base::MutexLock lock(mutex_);
  return report_;
}

bool SegmentTable::is_fresh(const Piece& piece) {
  const Result<GpuPointer> pointer = driver_.pointer(piece.registration->address());
  return pointer && pointer->kind == MemoryKind::kGpu && pointer->buffer_id == piece.buffer_id;
}

SegmentTable::Found SegmentTable::look_up(std::uintptr_t address, std::size_t size) {
  const std::shared_ptr<const Entries> entries = this->entries();
  const auto after = entries->upper_bound(address);
  if (after == entries->begin()) return {};
  const Entry& entry = *std::prev(after)->second;
  for (const Piece& piece : entry.pieces) {
    if (!piece.registration->covers(address, 1)) continue;
    if (!is_fresh(piece)) return {};
    if (entry.key != nullptr && entry.key->covers(address, size)) return {entry.key, entry.generation};
    if (piece.registration->covers(address, size)) return {piece.registration, entry.generation};
  }
  return {};
}

std::uint64_t SegmentTable::generation(std::uintptr_t address) { return look_up(address, 1).generation; }

std::vector<Segment> SegmentTable::asked(Status* failure) {
  Result<std::vector<Segment>> answer = provider_();
  if (!answer) {
    *failure = answer.error();
    // What was there is kept: who cannot tell has not said that it is gone.
    std::vector<Segment> kept;
    for (const auto& [begin, entry] : *entries()) kept.push_back(entry->segment);
    return kept;
  }
  std::vector<Segment> segments = *std::move(answer);
  std::erase_if(segments, [](const Segment& segment) { return segment.range.end <= segment.range.begin; });
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.range.begin < b.range.begin; });
  const auto overlaps = [](const Segment& a, const Segment& b) { return b.range.begin < a.range.end; };
  segments.erase(std::unique(segments.begin(), segments.end(), overlaps), segments.end());
  if (segments.size() > limits_.segments_max) segments.resize(limits_.segments_max);
  return segments;
}

void SegmentTable::sync_locked() {
  Status failure;
  const std::shared_ptr<const Entries> before = entries();
  auto now = std::make_shared<Entries>();
  SegmentReport report;
  for (const Segment& segment : asked(&failure)) {
    const auto old = before->find(segment.range.begin);
    std::shared_ptr<const Entry> entry = updated(segment, old != before->end() ? old->second.get() : nullptr);
    if (!entry->failure.ok()) failure = entry->failure;
    const bool whole = entry->key != nullptr && entry->key->end() == entry->covered();
    report.without_key += entry->pieces.size() > 1 && !whole ? 1 : 0;
    report.pieces += entry->pieces.size();
    now->emplace(segment.range.begin, std::move(entry));
  }
  report.segments = now->size();
  report.failure = failure;
  std::shared_ptr<const Entries> dying;  // Deregisters what is gone, after the lock is released.
  const base::MutexLock lock(mutex_);
  report.syncs = report_.syncs + 1;
  report_ = report;
  dying = std::exchange(entries_, std::move(now));
}

std::shared_ptr<const SegmentTable::Entry> SegmentTable::updated(const Segment& segment, const Entry* old) {
  auto entry = std::make_shared<Entry>(continued(segment, old));
  const bool complete =
      entry->covered() == segment.range.end && entry->key != nullptr && entry->key->end() == segment.range.end;
  const bool tried = !entry->failure.ok() && old->segment == segment;
  if (complete || (tried && clock_.now() < entry->retry_at)) return entry;
  entry->failure = register_tail(entry.get());
  if (keys_ != nullptr && entry->pieces.size() > keys_->pieces_max()) compact(entry.get());
  if (const Status bound = bind(entry.get()); !bound.ok()) entry->failure = bound;
  if (!entry->failure.ok()) entry->retry_at = clock_.now() + limits_.failure_ttl;
  return entry;
}

SegmentTable::Entry SegmentTable::continued(const Segment& segment, const Entry* old) {
  const bool same = old != nullptr && old->segment.generation == segment.generation &&
                    old->covered() <= segment.range.end &&
                    std::all_of(old->pieces.begin(), old->pieces.end(), [this](const Piece& p) { return is_fresh(p); });
  Entry entry;
  if (same) entry = *old;
  if (!same) entry.generation = kSegmentGeneration | ++next_generation_;
  entry.segment = segment;
  return entry;
}

Status SegmentTable::register_tail(Entry* entry) {
  const std::uintptr_t end = entry->segment.range.end;
  for (std::uintptr_t at = entry->covered(); at < end; at = entry->covered()) {
    const AddressRange range{at, at + std::min<std::uint64_t>(end - at, limits_.piece_bytes_max)};
    HAWSER_TRY_ASSIGN(const GpuPointer pointer, driver_.pointer(at));
    if (pointer.kind != MemoryKind::kGpu) {
      return Status(Code::kInvalid, base::format("the segment at {:#x} is {}, not GPU memory",
                                                 entry->segment.range.begin, to_string(pointer.kind)));
    }
    HAWSER_TRY_ASSIGN(auto registration, register_dmabuf(domain_, driver_, range, access_, pointer.ordinal));
    entry->pieces.push_back({std::move(registration), pointer.buffer_id});
  }
  return {};
}

void SegmentTable::compact(Entry* entry) {
  const std::uint64_t size = entry->covered() - entry->segment.range.begin;
  if ((size + limits_.piece_bytes_max - 1) / limits_.piece_bytes_max > keys_->pieces_max()) return;
  Entry fewer{.segment = {.range = {entry->segment.range.begin, entry->covered()}}};
  // Where it fails the many pieces are still good.
  if (register_tail(&fewer).ok()) entry->pieces = std::move(fewer.pieces);
}

Status SegmentTable::bind(Entry* entry) {
  const std::vector<Piece>& pieces = entry->pieces;
  if (pieces.empty() || (entry->key != nullptr && entry->key->end() == entry->covered())) return {};
  if (pieces.size() == 1) {
    entry->key = pieces.front().registration;
    return {};
  }
  if (keys_ == nullptr) return {};
  if (pieces.size() > keys_->pieces_max()) {
    return Status(Code::kBusy,
                  base::format("the segment at {:#x} has {} pieces, and a key of {} at most {}",
                               entry->segment.range.begin, pieces.size(), domain_->name(), keys_->pieces_max()))
        .with_device(domain_->name());
  }
  std::vector<std::shared_ptr<Registration>> list;
  list.reserve(pieces.size());
  for (const Piece& piece : pieces) list.push_back(piece.registration);
  HAWSER_TRY_ASSIGN(entry->key, keys_->bind(list, access_));
  return {};
}

Result<std::vector<MemorySource::Made>> SegmentedMemory::make(const Wanted& wanted) {
  const bool same_access = wanted.access == segments_.access() || wanted.access.rights == Rights::kNone;
  if (same_access && wanted.size != 0 && otherwise_.is_gpu_memory(wanted.address)) {
    SegmentTable::Found found = segments_.find(wanted.address, wanted.size);
    const std::uint64_t generation = wanted.generation != 0 ? wanted.generation : found.generation;
    if (found.registration != nullptr) return std::vector<Made>{{std::move(found.registration), generation}};
  }
  HAWSER_TRY_ASSIGN(std::vector<Made> made, otherwise_.make(wanted));
  // As they will be asked for: part of such a range may lie in a segment.
  for (Made& one : made) {
    if (wanted.generation == 0) one.generation = generation(std::max(wanted.address, one.registration->address()));
  }
  return made;
}

std::uint64_t SegmentedMemory::generation(std::uintptr_t address) {
  const std::uint64_t generation = segments_.generation(address);
  return generation != 0 ? generation : otherwise_.generation(address);
}

}  // namespace hawser::backend::verbs
