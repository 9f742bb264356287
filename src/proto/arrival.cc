#include "proto/arrival.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/planted.h"

namespace hawser::proto {
namespace {

constexpr std::size_t kSweepMin = 32;        ///< Fewer records are never swept: so few cost nothing.
constexpr std::uint32_t kInlineChunks = 64;  ///< Noted without a bitmap of their own.
constexpr std::uint32_t kMoreWordsMax = (wire::kChunksMax - kInlineChunks) / 64;

constexpr ArrivalResult kWaitingResult{ArrivalState::kWaiting, 0};
constexpr ArrivalResult kIgnoredResult{ArrivalState::kIgnored, 0};
constexpr ArrivalResult kCorruptResult{ArrivalState::kCorrupt, 0};

}  // namespace

ArrivalResult ArrivalTable::on_chunk(std::uint64_t transfer, std::uint32_t index) {
  if (transfer == 0 || index >= wire::kChunksMax) return kCorruptResult;
  Record* record = find_or_add(transfer);
  if (record == nullptr) return transfer < oldest_ ? kIgnoredResult : kCorruptResult;
  if (record->complete || is_retired(*record)) return kIgnoredResult;
  if (record->arrived && index >= record->chunks) return kCorruptResult;
  switch (mark(*record, index)) {
    case Mark::kSeen:
      return kIgnoredResult;
    case Mark::kNoRoom:
      return kCorruptResult;
    case Mark::kNew:
      break;
  }
  return finish_if_all(*record);
}

ArrivalResult ArrivalTable::on_arrive(std::uint64_t transfer, std::uint32_t chunks, std::uint64_t cookie) {
  if (transfer == 0 || chunks > wire::kChunksMax) return kCorruptResult;
  Record* record = find_or_add(transfer);
  if (record == nullptr) return transfer < oldest_ ? kIgnoredResult : kCorruptResult;
  if (record->arrived && !record->complete && chunks == 0) {
    record->chunks = 0;
    return finish_if_all(*record);
  }
  if (record->arrived || record->complete || is_retired(*record)) return kIgnoredResult;
  if (chunks != 0 && record->end > chunks) return kCorruptResult;
  record->arrived = true;
  record->chunks = chunks;
  record->cookie = cookie;
  return finish_if_all(*record);
}

ArrivalResult ArrivalTable::on_whole(std::uint64_t transfer, std::uint64_t cookie) {
  const bool known = transfer < oldest_ || (!records_.empty() && records_[place_of(transfer)].transfer == transfer);
  if (known || transfer == 0) return on_arrive(transfer, 0, cookie);
  return {ArrivalState::kComplete, cookie};
}

std::optional<std::uint64_t> ArrivalTable::cancel(std::uint64_t transfer) {
  Record* record = transfer == 0 ? nullptr : find_or_add(transfer);
  if (record == nullptr || record->complete) return std::nullopt;
  record->complete = true;
  drop_bitmap(*record);
  return record->arrived ? std::optional(record->cookie) : std::nullopt;
}

ArrivalResult ArrivalTable::finish_if_all(Record& record) {
  if (!record.arrived || (record.chunks != 0 && record.seen < record.chunks)) return kWaitingResult;
  record.complete = true;
  drop_bitmap(record);
  return {ArrivalState::kComplete, record.cookie};
}

// Null when the transfer is retired and nothing is known of it, or when there are too many.
ArrivalTable::Record* ArrivalTable::find_or_add(std::uint64_t transfer) {
  if (records_.empty()) {
    if (transfer < oldest_ || !make_room()) return nullptr;
  }
  std::size_t at = place_of(transfer);
  if (records_[at].transfer == transfer) return &records_[at];
  if (transfer < oldest_) return nullptr;
  if (count_ >= sweep_at_) {
    if (!make_room()) return nullptr;
    at = place_of(transfer);
  }
  ++count_;
  records_[at].transfer = transfer;
  return &records_[at];
}

// Where the transfer is, or the free place where it would go. At least half of the places are free.
std::size_t ArrivalTable::place_of(std::uint64_t transfer) const {
  const std::size_t mask = records_.size() - 1;
  // Ids that count up by a step would crowd in a plain remainder.
  std::size_t at = static_cast<std::size_t>((transfer * 0x9e3779b97f4a7c15U) >> 32) & mask;
  while (records_[at].transfer != 0 && records_[at].transfer != transfer) at = (at + 1) & mask;
  return at;
}

// Sweeps out what is retired. The next sweep comes when the number of records has doubled, so it costs O(1) for each.
bool ArrivalTable::make_room() {
  std::size_t staying = 0;
  for (const Record& record : records_) staying += record.transfer != 0 && !is_retired(record);
  if (staying >= limit_) return false;
  sweep_at_ = std::min(std::max(kSweepMin, 2 * staying), 2 * limit_);
  std::vector<Record> old(std::bit_ceil(2 * sweep_at_));
  old.swap(records_);
  count_ = staying;
  for (Record& record : old) {
    if (record.transfer == 0) continue;
    if (is_retired(record)) {
      drop_bitmap(record);
    } else {
      records_[place_of(record.transfer)] = std::move(record);
    }
  }
  return true;
}

ArrivalTable::Mark ArrivalTable::mark(Record& record, std::uint32_t index) {
  std::uint64_t* word = &record.bits;
  if (index >= kInlineChunks) {
    const std::uint32_t place = (index - kInlineChunks) / 64;
    if (place >= record.more_words && !grow_bitmap(record, place)) return Mark::kNoRoom;
    word = &record.more[place];
  }
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((*word & bit) != 0 && !base::planted(base::Planted::kChunkCountedTwice)) return Mark::kSeen;
  *word |= bit;
  ++record.seen;
  record.end = std::max(record.end, index + 1);
  return Mark::kNew;
}

bool ArrivalTable::grow_bitmap(Record& record, std::uint32_t place) {
  std::uint32_t words = std::min(std::max(place + 1, record.more_words * 2), kMoreWordsMax);
  if (record.arrived) words = (record.chunks - kInlineChunks + 63) / 64;
  const std::size_t added = (words - record.more_words) * sizeof(std::uint64_t);
  if (added > bitmap_bytes_max_ - bitmap_bytes_) return false;
  auto more = std::make_unique<std::uint64_t[]>(words);
  std::copy_n(record.more.get(), record.more_words, more.get());
  record.more = std::move(more);
  record.more_words = words;
  bitmap_bytes_ += added;
  return true;
}

void ArrivalTable::drop_bitmap(Record& record) {
  bitmap_bytes_ -= record.more_words * sizeof(std::uint64_t);
  record.more.reset();
  record.more_words = 0;
}

void ArrivalTable::forget_all() {
  std::vector<Record>().swap(records_);
  count_ = 0;
  sweep_at_ = 0;
  bitmap_bytes_ = 0;
}

}  // namespace hawser::proto
