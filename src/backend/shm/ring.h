#pragma once

// The message ring of one direction of a path: single producer, single consumer, in memory that two processes map.
//
// It is an array of cache lines. A record takes as many lines in a row as it needs; in each, the first word is a header
// that tells in which lap around the ring the line was written. The header of a record's first line carries its kind
// and size and is stored last. So the consumer looks at one word, a small message and its flag travel in one line, and
// a producer that is killed between any two stores leaves no torn record: the line still shows an earlier lap.
//
// A record of `A::kRunMin` bytes or more is a *run*: one header, then its bytes in a row, which can be copied as fast
// as memory goes, past the caches where that pays (base/copy.h). Its lines have no headers of their own, so bytes of a
// message lie where a later lap looks for a header. The producer knows which lines those are (`stale_`), and clears the
// header word of such a line before it publishes the record in front of it. The consumer never looks at one before.
//
// What the consumer gives back it has dealt with, not only copied: so the producer knows which messages the peer's
// agent took, also when the peer is dead (`each_unread`).
//
// Nothing read from here is trusted: each word is read once, then checked. A hostile peer can break its own path only.
//
// Sleep: a consumer that will not look any more sets `asleep`, and a producer that waits for room sets `room_wanted`;
// both look once more after a fence. Whoever finds the other's flag set clears it and rings the other's doorbell.
//
// Thread rule: one thread per end. Lifetime: both ends borrow the shared memory.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/shm/atomics.h"
#include "backend/shm/line_marks.h"

namespace hawser::backend::shm {

inline constexpr std::size_t kLineSize = 64;
inline constexpr std::size_t kLineWords = 8;
inline constexpr std::size_t kHeaderSize = 8;
inline constexpr std::size_t kLinePayload = kLineSize - kHeaderSize;

template <typename A>
struct alignas(kLineSize) RingLine {
  typename A::Word words[kLineWords];  ///< The first is the header.
};

/// What one side of a path writes and the other only reads (but for clearing the two flags). Far enough apart that a
/// processor which fetches lines in pairs does not drag one word along with another.
template <typename A>
struct RingSide {
  alignas(128) typename A::Word pin;     ///< See pin.h.
  alignas(128) typename A::Word tail;    ///< As consumer: lines given back since the beginning. See give_back().
  alignas(128) typename A::Word asleep;  ///< As consumer: ring my doorbell when there is a record.
  typename A::Word room_wanted;          ///< As producer: ring it when there is room.
  alignas(128) typename A::Word ping;    ///< Number of the last heartbeat that this side asks for.
  typename A::Word pong;                 ///< The last of the other side's `ping` that this side saw.
};

enum class RecordKind : std::uint8_t {
  kMessage = 1,   ///< A whole message.
  kFragment = 2,  ///< Part of one; more follow.
  kLast = 3,      ///< The last part.
};

struct Record {
  RecordKind kind = RecordKind::kMessage;
  std::uint32_t size = 0;
};

namespace ring {

// lap:32 | size:24 | kind:8
constexpr std::uint64_t header(std::uint32_t lap, std::uint32_t size, std::uint8_t kind) {
  return std::uint64_t{lap} << 32 | std::uint64_t{size} << 8 | kind;
}
constexpr std::uint32_t lap_of(std::uint64_t header) { return static_cast<std::uint32_t>(header >> 32); }
constexpr std::uint32_t size_of(std::uint64_t header) { return static_cast<std::uint32_t>(header >> 8) & 0xffffff; }
constexpr std::uint8_t kind_of(std::uint64_t header) { return static_cast<std::uint8_t>(header); }

constexpr std::uint64_t lines_for(std::uint64_t size, std::size_t run_min = Atomics::kRunMin) {
  if (size >= run_min) return (kHeaderSize + size + kLineSize - 1) / kLineSize;
  return size <= kLinePayload ? 1 : (size + kLinePayload - 1) / kLinePayload;
}
/// A record takes a quarter of the ring at most, which is what makes the rule for `room_wanted` work.
constexpr std::uint32_t record_max(std::uint64_t lines, std::size_t run_min = Atomics::kRunMin) {
  const std::uint64_t run = lines / 4 * kLineSize - kHeaderSize;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(run >= run_min ? run : lines / 4 * kLinePayload, 0xffffff));
}
/// Copies the first `size` bytes of a line's payload.
template <typename A>
void read_line(const RingLine<A>& line, std::byte* out, std::size_t size) {
  std::size_t word = 1;
  for (; size >= 8; size -= 8, out += 8) {
    const std::uint64_t value = line.words[word++].load(std::memory_order_relaxed);
    std::memcpy(out, &value, 8);
  }
  if (size == 0) return;
  const std::uint64_t value = line.words[word].load(std::memory_order_relaxed);
  std::memcpy(out, &value, size);
}

}  // namespace ring

/// Where the lines are. `count` is a power of two, 4 at least.
template <typename A>
struct RingLines {
  RingLine<A>* lines = nullptr;
  std::uint64_t count = 0;

  RingLine<A>& at(std::uint64_t position) const { return lines[position & (count - 1)]; }
  /// The first byte of the run at `position`, counted from the ring's beginning.
  std::size_t run_offset(std::uint64_t position) const { return (position & (count - 1)) * kLineSize + kHeaderSize; }
  std::size_t bytes() const { return count * kLineSize; }
  typename A::Word* words() const { return lines[0].words; }
  /// Never the value that fresh, zeroed memory has in the first lap.
  std::uint32_t lap(std::uint64_t position) const {
    return static_cast<std::uint32_t>(position >> std::countr_zero(count)) + 1;
  }
  /// Copies the `size` bytes of the record that begins there.
  void read(std::uint64_t position, std::uint32_t size, std::byte* out) const {
    if (size >= A::kRunMin) {
      const std::size_t offset = run_offset(position);
      const std::size_t first = std::min<std::size_t>(size, bytes() - offset);
      A::copy_out(words(), offset, out, first);
      A::copy_out(words(), 0, out + first, size - first);
      return;
    }
    for (std::size_t left = size; left > 0; ++position) {
      const std::size_t part = std::min(left, kLinePayload);
      ring::read_line<A>(at(position), out, part);
      out += part;
      left -= part;
    }
  }
};

enum class Put : std::uint8_t {
  kDone,
  kFull,
  kCorrupt,  ///< The consumer claims to have read what was never written.
};

template <typename A>
class RingProducer {
 public:
  RingProducer() = default;
  RingProducer(RingLines<A> lines, RingSide<A>* mine, RingSide<A>* theirs)
      : lines_(lines), mine_(mine), theirs_(theirs) {}

  std::uint32_t record_max() const { return ring::record_max(lines_.count, A::kRunMin); }
  /// Lines not consumed yet, when last looked.
  std::uint64_t used_lines() const { return position_ - tail_; }

  /// `head` + `body` as one record of at most record_max() bytes. After kDone ask must_ring().
  Put put(RecordKind kind, std::span<const std::byte> head, std::span<const std::byte> body) {
    const auto size = static_cast<std::uint32_t>(head.size() + body.size());
    const std::uint64_t need = ring::lines_for(size, A::kRunMin);
    if (position_ + need - tail_ > lines_.count) [[unlikely]] {
      if (!refresh()) return Put::kCorrupt;
      if (position_ + need - tail_ > lines_.count) return Put::kFull;
    }
    const bool is_run = size >= A::kRunMin;
    if (is_run) {
      if (fill_run(need, head, body)) A::stream_fence();
    } else {
      for (std::uint64_t i = 1; i < need; ++i) fill(i, head, body);
      fill(0, head, body);
    }
    if (!stale_.empty()) clear_stale(need, is_run);
    const std::uint64_t header = ring::header(lines_.lap(position_), size, static_cast<std::uint8_t>(kind));
    lines_.at(position_).words[0].store(header, std::memory_order_release);
    position_ += need;
    return Put::kDone;
  }

  /// Whether the consumer has given all back.
  bool is_drained() const { return theirs_->tail.load(std::memory_order_relaxed) == position_; }
  /// Lines written since the beginning.
  std::uint64_t position() const { return position_; }
  /// Up to there the consumer had given lines back when this end last looked, which was no nonsense then: never more
  /// than all lines behind `position`.
  std::uint64_t known_read() const { return tail_; }
  /// Up to there the consumer says that it has given lines back, which may be nonsense.
  std::uint64_t given_back() const { return theirs_->tail.load(std::memory_order_acquire); }
  /// Calls `see(record, position)` for each record that the consumer has not given back, oldest first. False: the
  /// consumer's word makes no sense, or it wrote on our lines.
  template <typename See>
  bool each_unread(See see) const {
    std::uint64_t at = given_back();
    if (position_ - at > lines_.count) return false;
    while (at != position_) {
      const std::uint64_t header = lines_.at(at).words[0].load(std::memory_order_relaxed);
      const std::uint32_t size = ring::size_of(header);
      const std::uint8_t kind = ring::kind_of(header);
      if (ring::lap_of(header) != lines_.lap(at) || kind < 1 || kind > 3 || size > record_max()) return false;
      const std::uint64_t need = ring::lines_for(size, A::kRunMin);
      if (need > position_ - at) return false;
      see(Record{static_cast<RecordKind>(kind), size}, at);
      at += need;
    }
    return true;
  }
  /// The beginning of a record that each_unread showed: all of it, or kLinePayload bytes.
  std::span<const std::byte> read_begin(const Record& record, std::uint64_t position,
                                        std::span<std::byte, kLinePayload> out) const {
    const auto begin = out.first(std::min<std::size_t>(record.size, kLinePayload));
    ring::read_line<A>(lines_.at(position), begin.data(), begin.size());
    return begin;
  }
  /// All of it.
  void read(const Record& record, std::uint64_t position, std::byte* out) const {
    lines_.read(position, record.size, out);
  }

  /// After records were put: whether the consumer sleeps and its doorbell is to be rung. True once per sleep.
  bool must_ring() {
    A::fence();
    return theirs_->asleep.load(std::memory_order_relaxed) != 0 &&
           theirs_->asleep.exchange(0, std::memory_order_acq_rel) != 0;
  }

  /// For one who does not sleep after kFull: a record of `size` fits, and a quarter of the ring is free. Else the two
  /// ends would wait for each other at each record. True, too, where the consumer broke the rules: `put` finds that.
  bool has_room(std::uint32_t size) {
    const std::uint64_t need = std::max(ring::lines_for(size, A::kRunMin), lines_.count / 4);
    return !refresh() || position_ + need - tail_ <= lines_.count;
  }

  /// After kFull, before sleeping: the doorbell will ring once there is room. False: a record of `size` fits already.
  bool await_room(std::uint32_t size) {
    mine_->room_wanted.store(1, std::memory_order_relaxed);
    A::fence();
    if (refresh() && position_ + ring::lines_for(size, A::kRunMin) - tail_ > lines_.count) return true;
    mine_->room_wanted.store(0, std::memory_order_relaxed);
    return false;
  }

 private:
  /// Line `i` of the record: its header (but for the first line) and its part of the payload.
  void fill(std::uint64_t i, std::span<const std::byte> head, std::span<const std::byte> body) {
    RingLine<A>& line = lines_.at(position_ + i);
    if (i != 0) line.words[0].store(ring::header(lines_.lap(position_ + i), 0, 0), std::memory_order_relaxed);
    std::uint64_t payload[kLineWords - 1];
    const std::size_t size = gather(i * kLinePayload, head, body, reinterpret_cast<std::byte*>(payload));
    for (std::size_t word = 0; word * 8 < size; ++word) {
      line.words[word + 1].store(payload[word], std::memory_order_relaxed);
    }
  }

  /// True: a fence is due before the record is published.
  bool fill_run(std::uint64_t need, std::span<const std::byte> head, std::span<const std::byte> body) {
    if (stale_.empty()) stale_.open(lines_.count);
    const bool is_read_later = head.size() + body.size() >= A::kAsksMin && !is_drained();
    bool has_streamed = false;
    std::size_t offset = lines_.run_offset(position_);
    for (std::span<const std::byte> part : {head, body}) {
      while (!part.empty()) {
        const std::size_t count = std::min(part.size(), lines_.bytes() - offset);
        has_streamed |= A::copy_in(lines_.words(), offset, part.data(), count, is_read_later);
        offset = (offset + count) & (lines_.bytes() - 1);
        part = part.subspan(count);
      }
    }
    stale_.set(position_ + 1, need - 1);
    return has_streamed;
  }

  /// Before the record of `need` lines at the position is published. The line behind it is ours to write: if it were
  /// one that the consumer has not given back, it would be the first of a record, and those are not stale.
  void clear_stale(std::uint64_t need, bool is_run) {
    stale_.clear(position_, is_run ? 1 : need);
    const std::uint64_t next = position_ + need;
    if (!stale_.has(next)) return;
    stale_.clear(next, 1);
    lines_.at(next).words[0].store(0, std::memory_order_relaxed);
  }

  /// Up to kLinePayload bytes of head + body from `offset` on, padded with zeros to a whole word.
  static std::size_t gather(std::size_t offset, std::span<const std::byte> head, std::span<const std::byte> body,
                            std::byte* out) {
    std::size_t size = 0;
    for (const std::span<const std::byte> part : {head, body}) {
      if (offset >= part.size()) {
        offset -= part.size();
        continue;
      }
      const std::size_t count = std::min(part.size() - offset, kLinePayload - size);
      if (count != 0) std::memcpy(out + size, part.data() + offset, count);
      size += count;
      offset = 0;
      if (size == kLinePayload) return size;
    }
    if (size % 8 != 0) std::memset(out + size, 0, 8 - size % 8);
    return size;
  }

  bool refresh() {
    const std::uint64_t tail = theirs_->tail.load(std::memory_order_acquire);
    if (tail - tail_ > position_ - tail_) return false;
    tail_ = tail;
    return true;
  }

  RingLines<A> lines_;
  RingSide<A>* mine_ = nullptr;
  RingSide<A>* theirs_ = nullptr;
  std::uint64_t position_ = 0;  ///< Lines written since the beginning.
  std::uint64_t tail_ = 0;      ///< Lines consumed, when last looked.
  LineMarks stale_;             ///< Lines whose header word holds bytes of a run. Empty until there was a run.
};

enum class Got : std::uint8_t { kNone, kRecord, kCorrupt };

template <typename A>
class RingConsumer {
 public:
  RingConsumer() = default;
  RingConsumer(RingLines<A> lines, RingSide<A>* mine, RingSide<A>* theirs)
      : lines_(lines), mine_(mine), theirs_(theirs) {}

  /// Whether there is something to look at. One load.
  bool ready() const { return ring::lap_of(peek()) == lines_.lap(position_); }

  /// What the next record is. Reads its header once; take() copies its bytes.
  Got next(Record* record) {
    const std::uint64_t header = peek();
    if (ring::lap_of(header) != lines_.lap(position_)) return Got::kNone;
    const std::uint8_t kind = ring::kind_of(header);
    const std::uint32_t size = ring::size_of(header);
    if (kind < 1 || kind > 3 || size > ring::record_max(lines_.count, A::kRunMin)) return Got::kCorrupt;
    *record = {static_cast<RecordKind>(kind), size};
    return Got::kRecord;
  }

  /// Copies the bytes of the record that next() told of. Its lines are still the consumer's, until give_back().
  void take(const Record& record, std::byte* out) {
    lines_.read(position_, record.size, out);
    position_ += ring::lines_for(record.size, A::kRunMin);
  }
  /// Some record was taken and not given back.
  bool holds_taken() const { return given_back_ != position_; }
  /// Gives the lines of all that was taken back: the producer may write there, and knows that those records were read.
  /// True: it waits for room, and its doorbell is to be rung.
  //
  // The tail is a plain store to a line of our own: the producer reads it only when the ring looks full. Whether it
  // waits for room is asked only when a quarter of the ring is passed: it waits only while more than three quarters are
  // used, so on the way to its last record we pass such a border after it began to wait.
  bool give_back() {
    if (!holds_taken()) return false;
    const std::uint64_t quarter = lines_.count / 4;
    const bool border = given_back_ / quarter != position_ / quarter;
    given_back_ = position_;
    mine_->tail.store(position_, std::memory_order_release);
    if (!border) return false;
    A::fence();
    return theirs_->room_wanted.load(std::memory_order_relaxed) != 0 &&
           theirs_->room_wanted.exchange(0, std::memory_order_acq_rel) != 0;
  }

  /// Before sleeping: the doorbell will ring for the next record. False: there is one already, do not sleep.
  bool arm() {
    mine_->asleep.store(1, std::memory_order_relaxed);
    A::fence();
    if (!ready()) return true;
    disarm();
    return false;
  }
  void disarm() { mine_->asleep.store(0, std::memory_order_relaxed); }

 private:
  std::uint64_t peek() const { return lines_.at(position_).words[0].load(std::memory_order_acquire); }

  RingLines<A> lines_;
  RingSide<A>* mine_ = nullptr;
  RingSide<A>* theirs_ = nullptr;
  std::uint64_t position_ = 0;    ///< Lines consumed since the beginning.
  std::uint64_t given_back_ = 0;  ///< So many of them were given back.
};

}  // namespace hawser::backend::shm
