#pragma once

// LinkSet: the links of one session, one for each class of messages (Priority). Each link has its own numbers,
// acknowledgements and replay, so a message waits for none of a less urgent class. The link sends the most urgent
// message first. After kOvertakingMax messages that overtook a less urgent one it sends that one: none waits for ever.
//
// Thread rule: one thread at a time. Lifetime: as for LinkSender.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "proto/link.h"
#include "wire/session.h"

namespace hawser::proto {

inline constexpr std::uint32_t kOvertakingMax = 64;

class LinkSet {
 public:
  using Numbers = std::array<std::uint64_t, wire::kClasses>;  ///< One of each class.

  LinkSender& out(Priority priority) { return out_[wire::index_of(priority)]; }
  const LinkSender& out(Priority priority) const { return out_[wire::index_of(priority)]; }
  LinkReceiver& in(Priority priority) { return in_[wire::index_of(priority)]; }
  const LinkReceiver& in(Priority priority) const { return in_[wire::index_of(priority)]; }

  /// What the next message of this class is called.
  wire::Place next(Priority priority) const {
    return {.priority = priority, .seq = out_[wire::index_of(priority)].next_seq()};
  }
  /// It may be offered to the path directly: the path is lossless, and nothing that goes first waits for room in it.
  bool can_pass(Priority priority) const {
    for (std::size_t each = 0; each <= wire::index_of(priority); ++each) {
      if (!out_[each].can_pass()) return false;
    }
    return overtaken_ < kOvertakingMax;
  }
  /// The path took message next(priority) directly. Only after can_pass().
  void pass(Priority priority) {
    out(priority).pass();
    note_sent(priority);
  }
  /// The class of the message that is to be sent next; nothing: none waits.
  std::optional<Priority> first_pending() const {
    return overtaken_ < kOvertakingMax ? most_urgent_pending() : least_urgent_pending();
  }
  /// The most urgent class in which a message waits, whatever was overtaken; nothing: none waits.
  std::optional<Priority> most_urgent_pending() const {
    for (std::size_t each = 0; each < wire::kClasses; ++each) {
      if (!out_[each].pending().empty()) return static_cast<Priority>(each);
    }
    return std::nullopt;
  }
  /// The path took the oldest message of that class that waited.
  void sent(Priority priority) {
    out(priority).sent();
    note_sent(priority);
  }
  /// Messages kept, of all classes.
  std::size_t kept() const {
    return std::accumulate(out_.begin(), out_.end(), std::size_t{0},
                           [](std::size_t sum, const LinkSender& link) { return sum + link.kept(); });
  }
  /// Calls `see` with each message that is kept, of all classes.
  template <typename See>
  void each_kept(See see) const {
    for (const LinkSender& link : out_) link.each_kept(see);
  }
  /// Whether the path in use now is lossless.
  void set_lossless(bool lossless) {
    for (LinkSender& link : out_) link.set_lossless(lossless);
  }
  Status on_ack(const wire::Ack& ack) { return out(ack.priority).on_ack(ack.up_to); }
  /// What the peer has of each class, as a Welcome says. Errors: those of LinkSender, of the first class that has one.
  Status on_received(const Numbers& received);
  Status replay_from(const Numbers& received);

  Numbers received() const {
    Numbers all;
    std::ranges::transform(in_, all.begin(), [](const LinkReceiver& link) { return link.received(); });
    return all;
  }
  /// The most urgent class that owes an acknowledgement; see LinkReceiver::ack_due.
  std::optional<Priority> ack_due(bool idle) const {
    for (std::size_t each = 0; each < wire::kClasses; ++each) {
      if (in_[each].ack_due(idle)) return static_cast<Priority>(each);
    }
    return std::nullopt;
  }

 private:
  std::optional<Priority> least_urgent_pending() const {
    for (std::size_t each = wire::kClasses; each-- > 0;) {
      if (!out_[each].pending().empty()) return static_cast<Priority>(each);
    }
    return std::nullopt;
  }
  void note_sent(Priority priority) {
    const std::optional<Priority> last = least_urgent_pending();
    overtaken_ = last && *last > priority ? overtaken_ + 1 : 0;
  }

  std::array<LinkSender, wire::kClasses> out_;
  std::uint32_t overtaken_ = 0;  ///< So many went in a row while a less urgent one waited.
  std::array<LinkReceiver, wire::kClasses> in_;
};

}  // namespace hawser::proto
