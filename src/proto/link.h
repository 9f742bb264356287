#pragma once

// Reliable, ordered messages to one incarnation of a peer, whatever paths come and go below. The sender numbers
// messages from 1 and keeps them until the peer acknowledged them; the receiver drops duplicates and says when to
// acknowledge. On a lossless path (one that loses a message only with the peer) nothing is kept or acknowledged. When
// such a path is lost, it gives back what the peer had not taken, and the sender keeps that (keep_again).
//
// How a session uses it:
//   seq = sender.next_seq(); encode the head with it. If sender.can_pass(), offer the message to the path and, when it
//   took it, call sender.pass(). Else sender.push(head, body): false is kBusy.
//   In each turn: while ((message = sender.pending()) is not empty and the path takes it) sender.sent().
//   On a fresh path, once the peer's Welcome is there: sender.replay_from(welcome.received).
//
// Thread rule: one thread at a time. Lifetime: pending() is valid until the next call that is not const.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hawser/status.h>

namespace hawser::proto {

using Messages = std::vector<std::vector<std::byte>>;

struct LinkLimits {
  std::uint32_t count = 4096;      ///< Messages kept.
  std::uint32_t bytes = 4u << 20;  ///< Bytes of them, bookkeeping included. At least one message of the largest size.
};

/// Messages in a growing ring of bytes, each in one piece: push at the back, drop at the front, a cursor between.
class MessageRing {
 public:
  explicit MessageRing(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// False, and nothing done, when `bytes_max` would be passed.
  bool push(std::span<const std::byte> head, std::span<const std::byte> body);
  /// In front of all others and behind the cursor, whatever `bytes_max` says.
  void put_in_front(const Messages& messages);
  /// There must be one. A cursor on it moves on.
  void drop_front();
  std::span<const std::byte> at_cursor() const;  ///< Empty when the cursor is behind the last one.
  void advance_cursor();
  void reset_cursor();  ///< To the front.
  void trim();          ///< Gives its memory back when it is empty.
  /// Calls `see` with each message, from the front.
  template <typename See>
  void each(See see) const {
    std::size_t at = front_;
    for (std::size_t i = 0; i < count_; ++i) {
      if (i > 0) at = after(at);
      see(message_at(at));
    }
  }

  std::size_t count() const { return count_; }
  std::size_t ahead() const { return ahead_; }  ///< Messages from the cursor on.
  std::size_t capacity() const { return capacity_; }

 private:
  bool place(std::size_t record);
  bool grow(std::size_t record);
  void move_to(std::size_t capacity, const Messages& in_front);
  std::size_t after(std::size_t at) const;
  std::size_t record_at(std::size_t at) const;
  std::span<const std::byte> message_at(std::size_t at) const;

  const std::size_t bytes_max_;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t front_ = 0, back_ = 0;  ///< Place of the first record, and where the next one may go.
  std::size_t cursor_ = 0;            ///< Place of the record at the cursor; nothing when ahead_ is 0.
  std::size_t used_ = 0;              ///< Bytes of all records.
  std::size_t count_ = 0, ahead_ = 0;
};

class LinkSender {
 public:
  explicit LinkSender(const LinkLimits& limits = {}) : limits_(limits) {}

  /// Of the path in use now. Messages that wait are sent first either way.
  void set_lossless(bool lossless) { lossless_ = lossless; }
  bool lossless() const { return lossless_; }

  /// The number that the next message takes.
  std::uint64_t next_seq() const { return next_; }
  /// The path is lossless and nothing waits for room in it, so it may be offered message next_seq() directly.
  bool can_pass() const { return lossless_ && kept() == 0; }
  /// The path took message next_seq() directly. Only after can_pass().
  void pass();
  /// Takes message next_seq() for sending and, unless lossless, until it is acknowledged. False: a bound was reached.
  bool push(std::span<const std::byte> head, std::span<const std::byte> body);

  /// The oldest message that no path took yet; empty when there is none.
  std::span<const std::byte> pending() const { return ring_ ? ring_->at_cursor() : std::span<const std::byte>(); }
  /// The path took pending().
  void sent();

  /// kCorrupt for a number that was never given; an old one does nothing.
  Status on_ack(std::uint64_t up_to);
  /// All messages after `received` are pending again, or after the last one acknowledged if that is later: the Welcome
  /// of a path may have grown old. kCorrupt for a number never given; kDisconnected when messages that the peer may
  /// miss are no longer kept (they went over a lossless path): the session cannot go on.
  Status replay_from(std::uint64_t received);
  /// A lossless path was lost, and holds messages that it took and the peer did not: number `first` and those after it.
  /// They are kept from now on, beyond the bounds of `limits`; what is sent later has to wait for room within these.
  /// False, and nothing done: they are not the ones just before the oldest that is kept.
  bool keep_again(std::uint64_t first, const Messages& messages);

  std::size_t kept() const { return ring_ ? ring_->count() : 0; }
  /// Calls `see` with each message that is kept: no path took it, or the peer has not acknowledged it.
  template <typename See>
  void each_kept(See see) const {
    if (ring_) ring_->each(see);
  }
  /// The last message that the peer has told to have taken. Of those that went over lossless paths it tells only when
  /// it greets.
  std::uint64_t acknowledged() const { return acked_; }
  /// For an idle turn: gives memory back.
  void trim() {
    if (ring_) ring_->trim();
  }
  std::size_t memory() const { return ring_ ? ring_->capacity() : 0; }

 private:
  std::uint64_t first_kept() const { return next_ - kept(); }
  void release_through(std::uint64_t seq);

  const LinkLimits limits_;
  std::unique_ptr<MessageRing> ring_;  ///< From the first message that was kept. Most links of a session are not used.
  std::uint64_t next_ = 1;
  std::uint64_t acked_ = 0;  ///< The peer said that it has all up to here.
  bool lossless_ = false;
};

enum class Received : std::uint8_t {
  kDeliver = 1,
  kDuplicate = 2,  ///< Drop it.
  kGap = 3,        ///< A message is missing: the peer broke the protocol (kCorrupt).
};

inline constexpr std::uint32_t kAckMessages = 16;    ///< An acknowledgement is due after so many,
inline constexpr std::size_t kAckBytes = 64 * 1024;  ///< or after so many bytes, or on an idle turn.

class LinkReceiver {
 public:
  /// When all paths are lossless, nothing is acknowledged.
  void set_lossless(bool lossless) { lossless_ = lossless; }

  /// `lossless`: of the path that it came on. The two ends may prefer different paths, and a peer that sends over one
  /// that may lose messages waits for acknowledgements.
  Received on_receive(std::uint64_t seq, std::size_t bytes, bool lossless = false) {
    if (seq != received_ + 1) [[unlikely]]
      return on_unexpected(seq);
    received_ = seq;
    if (!lossless) {
      ++unacked_messages_;
      unacked_bytes_ += static_cast<std::uint32_t>(bytes);
    }
    return Received::kDeliver;
  }
  /// Whether an Ack should go out now. An idle turn acknowledges whatever there is.
  bool ack_due(bool idle) const {
    if (lossless_ || unacked_messages_ == 0) return false;
    return idle || unacked_messages_ >= kAckMessages || unacked_bytes_ >= kAckBytes;
  }
  /// The number to put in an Ack or Welcome that is on its way now.
  std::uint64_t take_ack() {
    unacked_messages_ = 0;
    unacked_bytes_ = 0;
    return received_;
  }
  std::uint64_t received() const { return received_; }

 private:
  Received on_unexpected(std::uint64_t seq);

  std::uint64_t received_ = 0;
  std::uint32_t unacked_bytes_ = 0;  ///< An acknowledgement is due long before 4 GiB.
  std::uint32_t unacked_messages_ = 0;
  bool lossless_ = false;
};

}  // namespace hawser::proto
