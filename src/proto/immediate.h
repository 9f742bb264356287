#pragma once

// Immediates: the 32 bits that a write carries to the target's completion queue, by which the target itself learns that
// a covered chunk has landed. One queue pair has a sender at one end and a counter at the other, for each direction.
//
//   word  = tag:2, rest:30
//   chunk (0) = transfer:24, chunk:6      the low bits of the transfer's number
//   high  (1) = bits 30 to 59, low (2) = bits 0 to 29 of a number that the next chunk's is near to
//
// Words are read in the order of their queue pair, which is the only order that is used: a chunk's transfer is the
// number with these low bits that is nearest to the one before. The sender starts from 0 and says a whole number (high,
// then low) where the next is too far from the last; so any number below 2^60 is read as it was meant. What chunks add
// up to, in which order the words of several queue pairs come, and what comes twice is the ArrivalTable's business.
//
// Every word takes a receive of the target. The sender has no more under way than there are receives: the counter
// tells how many it read, after their receives were posted anew. The same number tells, when a queue pair broke, which
// chunks had landed all the same: those whose word was read. They must not be written again, for the target may have
// told of them. And a write that was acknowledged is in the target's memory, but its word may have been lost with the
// queue pair: the sender knows which were not counted.
//
// Thread rule: one thread at a time. Values; no I/O.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include <hawser/status.h>

namespace hawser::proto {

/// Transfers of more chunks do without: what half a round trip saves is nothing to them, and each chunk would wake the
/// target.
inline constexpr std::uint64_t kImmediateChunksMax = 16;
inline constexpr std::uint64_t kImmediateTransferEnd = std::uint64_t{1} << 60;

/// What the writes of one chunk carry, in order: the last word belongs to the write of the chunk's last bytes, those
/// before it to writes of no bytes.
struct ImmediateWords {
  std::array<std::uint32_t, 3> words{};
  std::uint8_t count = 0;
  std::span<const std::uint32_t> all() const { return std::span(words).first(count); }
};

class ImmediateSender {
 public:
  /// A new life of the queue pair; the peer has posted `receives` for words.
  void begin(std::uint32_t receives);
  /// Empty when the chunk has to go without: no receive is left, or its number does not fit.
  ImmediateWords words_for(std::uint64_t transfer, std::uint32_t chunk) const;
  /// The words were posted. The number of the last one, from 1.
  std::uint64_t sent(const ImmediateWords& words, std::uint64_t transfer);
  /// The peer has read so many since `begin`. kCorrupt for more than were sent.
  Status on_counted(std::uint64_t counted);
  std::uint64_t counted() const { return counted_; }
  /// The transfers of the words that were not counted yet, once for each word, in order. Never more than receives.
  const std::deque<std::uint64_t>& uncounted() const { return uncounted_; }
  void forget_uncounted() { uncounted_.clear(); }

 private:
  std::uint32_t receives_ = 0;
  std::uint64_t near_ = 0;
  std::uint64_t sent_ = 0, counted_ = 0;
  std::deque<std::uint64_t> uncounted_;
};

class ImmediateCounter {
 public:
  struct Chunk {
    std::uint64_t transfer = 0;
    std::uint32_t chunk = 0;
  };
  /// A new life of the queue pair, for which `receives` are posted.
  void begin(std::uint32_t receives);
  /// Reads the next word. Nothing for one that belongs to a number. kCorrupt for what no sender says.
  Result<std::optional<Chunk>> on_word(std::uint32_t word);
  std::uint64_t counted() const { return counted_; }
  /// Whether the sender is to be told now, lest it runs out of receives,
  bool is_word_due() const { return counted_ - told_ >= tell_after_; }
  /// or has not heard of all.
  bool is_news() const { return counted_ > told_; }
  void told() { told_ = counted_; }

 private:
  std::uint64_t near_ = 0;
  std::uint64_t counted_ = 0, told_ = 0;
  std::uint64_t tell_after_ = 1;
  std::optional<std::uint32_t> high_;
};

}  // namespace hawser::proto
