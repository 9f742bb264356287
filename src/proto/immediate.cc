#include "proto/immediate.h"

#include <algorithm>

namespace hawser::proto {
namespace {

enum Tag : std::uint32_t { kChunk = 0, kHigh = 1, kLow = 2 };

constexpr std::uint32_t kTagShift = 30;
constexpr std::uint32_t kRestMask = (1u << kTagShift) - 1;
constexpr std::uint32_t kChunkBits = 6;
constexpr std::uint32_t kChunkMask = (1u << kChunkBits) - 1;
constexpr std::uint64_t kNearBits = kTagShift - kChunkBits;
constexpr std::uint64_t kNearMask = (std::uint64_t{1} << kNearBits) - 1;
constexpr std::uint64_t kNearHalf = std::uint64_t{1} << (kNearBits - 1);
static_assert(kImmediateChunksMax <= kChunkMask + 1);

std::uint32_t word_of(Tag tag, std::uint64_t rest) {
  return tag << kTagShift | (static_cast<std::uint32_t>(rest) & kRestMask);
}

bool is_near(std::uint64_t number, std::uint64_t to) {
  return number > to ? number - to < kNearHalf : to - number < kNearHalf;
}

Status bad_word(const char* what) { return Status(Code::kCorrupt, what).with_scope(Scope::kPath); }

}  // namespace

void ImmediateSender::begin(std::uint32_t receives) {
  *this = ImmediateSender();
  receives_ = receives;
}

ImmediateWords ImmediateSender::words_for(std::uint64_t transfer, std::uint32_t chunk) const {
  ImmediateWords words;
  if (transfer == 0 || transfer >= kImmediateTransferEnd || chunk >= kImmediateChunksMax) return words;
  const bool near = is_near(transfer, near_);
  if (sent_ - counted_ + (near ? 1 : 3) > receives_) return words;
  if (!near) {
    words.words[words.count++] = word_of(kHigh, transfer >> kTagShift);
    words.words[words.count++] = word_of(kLow, transfer);
  }
  words.words[words.count++] = word_of(kChunk, (transfer & kNearMask) << kChunkBits | chunk);
  return words;
}

std::uint64_t ImmediateSender::sent(const ImmediateWords& words, std::uint64_t transfer) {
  near_ = transfer;
  sent_ += words.count;
  uncounted_.insert(uncounted_.end(), words.count, transfer);
  return sent_;
}

Status ImmediateSender::on_counted(std::uint64_t counted) {
  if (counted > sent_) return bad_word("the peer counted more immediates than were sent");
  for (; counted_ < counted; ++counted_) {
    if (!uncounted_.empty()) uncounted_.pop_front();
  }
  return {};
}

void ImmediateCounter::begin(std::uint32_t receives) {
  *this = ImmediateCounter();
  tell_after_ = std::max(1u, receives / 2);
}

Result<std::optional<ImmediateCounter::Chunk>> ImmediateCounter::on_word(std::uint32_t word) {
  ++counted_;
  const std::uint32_t rest = word & kRestMask;
  switch (word >> kTagShift) {
    case kHigh:
      if (high_) return bad_word("an immediate does not follow the one before it");
      high_ = rest;
      return std::optional<Chunk>();
    case kLow:
      if (!high_) return bad_word("an immediate does not follow the one before it");
      near_ = std::uint64_t{*high_} << kTagShift | rest;
      high_.reset();
      return std::optional<Chunk>();
    case kChunk:
      break;
    default:
      return bad_word("an immediate of an unknown kind");
  }
  const std::uint64_t ahead = ((rest >> kChunkBits) - near_) & kNearMask;
  const std::uint64_t transfer = ahead < kNearHalf ? near_ + ahead : near_ - (kNearMask + 1 - ahead);
  const std::uint32_t chunk = rest & kChunkMask;
  // Below 0 it wraps, and is too large as well.
  if (high_ || transfer == 0 || transfer >= kImmediateTransferEnd || chunk >= kImmediateChunksMax) {
    return bad_word("an immediate names no chunk");
  }
  near_ = transfer;
  return std::optional(Chunk{.transfer = transfer, .chunk = chunk});
}

}  // namespace hawser::proto
