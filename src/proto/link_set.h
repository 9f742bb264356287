#pragma once

// LinkSet: the links of one session (wire/link.h). Each link has its own numbers, acknowledgements and replay.
//
// The set sends the most urgent message first. Links of one class take turns. After kOvertakingMax messages that
// overtook a less urgent one the set sends that one: none waits for ever.
//
// Thread rule: one thread at a time. Lifetime: as for LinkSender.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "proto/link.h"
#include "wire/link.h"
#include "wire/session.h"

namespace hawser::proto {

inline constexpr std::uint32_t kOvertakingMax = 64;

/// A bit for each link.
using LinkMask = std::uint32_t;
constexpr LinkMask mask_of(wire::Link link) { return LinkMask{1} << link.index(); }
/// Those of a lower index.
constexpr LinkMask mask_below(std::size_t index) { return (LinkMask{1} << index) - 1; }

class LinkSet {
 public:
  using Numbers = std::array<std::uint64_t, wire::kLinks>;  ///< One of each link.

  const LinkSender& out(wire::Link link) const { return out_[link.index()]; }
  const LinkReceiver& in(wire::Link link) const { return in_[link.index()]; }

  // Out.
  /// What the next message of this link is called.
  wire::Place next(wire::Link link) const { return {.link = link, .seq = out(link).next_seq()}; }
  /// It may be offered to the path directly: the path is lossless, and nothing that goes first waits for room in it.
  bool can_pass(wire::Link link) const {
    return is_lossless_ && (kept_ & kAhead[link.index()]) == 0 && overtaken_ < kOvertakingMax;
  }
  /// The path took message next(link) directly. Only after can_pass().
  void pass(wire::Link link) {
    out_[link.index()].pass();
    note_sent(link);
  }
  /// See LinkSender::push.
  bool push(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
    const bool is_taken = out_[link.index()].push(head, body);
    look_at(link);
    return is_taken;
  }
  /// The link of the message that is to be sent next; nothing: none waits. Links in `full` are left out: the path has
  /// no room for their messages, and does not hold up the most urgent of the others.
  std::optional<wire::Link> first_pending(LinkMask full = 0) const;
  /// The oldest message of the link that no path took yet.
  std::span<const std::byte> pending(wire::Link link) const { return out(link).pending(); }
  /// The path took pending(link).
  void sent(wire::Link link) {
    out_[link.index()].sent();
    look_at(link);
    note_sent(link);
  }
  /// Gives back the memory of links that keep no message.
  void trim() {
    for (LinkSender& link : out_) link.trim();
  }
  /// Bytes that the links hold for messages, kept or not.
  std::size_t memory() const {
    std::size_t bytes = 0;
    for (const LinkSender& link : out_) bytes += link.memory();
    return bytes;
  }
  /// Messages kept, of all links.
  std::size_t kept() const;
  bool keeps_any() const { return kept_ != 0; }
  /// Calls `see` with each message that is kept, of all links.
  template <typename See>
  void each_kept(See see) const {
    for (const LinkSender& link : out_) link.each_kept(see);
  }
  /// Whether the path in use now is lossless.
  void set_lossless(bool lossless) {
    is_lossless_ = lossless;
    for (LinkSender& link : out_) link.set_lossless(lossless);
  }
  bool lossless() const { return is_lossless_; }
  Status on_ack(const wire::Ack& ack);
  /// What the peer has of each link, as a Welcome says. Errors: those of LinkSender, of the first link that has one.
  Status on_received(const Numbers& received);
  Status replay_from(const Numbers& received);
  /// See LinkSender::keep_again.
  bool keep_again(const wire::Place& first, const Messages& messages) {
    const bool is_kept = out_[first.link.index()].keep_again(first.seq, messages);
    look_at(first.link);
    return is_kept;
  }

  // In.
  /// See LinkReceiver.
  Received on_receive(const wire::Place& place, std::size_t bytes, bool lossless = false) {
    const Received verdict = in_[place.link.index()].on_receive(place.seq, bytes, lossless);
    if (in(place.link).ack_due(true)) owed_ |= mask_of(place.link);
    return verdict;
  }
  Numbers received() const;
  /// The most urgent link that owes an acknowledgement; see LinkReceiver::ack_due.
  std::optional<wire::Link> ack_due(bool idle) const {
    for (LinkMask left = owed_; left != 0; left &= left - 1) {
      const auto link = wire::Link::at(static_cast<std::size_t>(std::countr_zero(left)));
      if (in(link).ack_due(idle)) return link;
    }
    return std::nullopt;
  }
  /// The number to put in an Ack that is on its way now.
  std::uint64_t take_ack(wire::Link link) {
    owed_ &= ~mask_of(link);
    return in_[link.index()].take_ack();
  }

 private:
  /// Of each link those whose messages are not less urgent than its own.
  static constexpr std::array<LinkMask, wire::kLinks> kAhead = [] {
    std::array<LinkMask, wire::kLinks> ahead{};
    for (std::size_t i = 0; i < wire::kLinks; ++i) {
      ahead[i] = mask_below(wire::Link::kFirst[wire::index_of(wire::Link::at(i).priority()) + 1]);
    }
    return ahead;
  }();

  /// What became of its messages.
  void look_at(wire::Link link) {
    const LinkMask bit = mask_of(link);
    kept_ = out(link).kept() > 0 ? kept_ | bit : kept_ & ~bit;
    pending_ = out(link).pending().empty() ? pending_ & ~bit : pending_ | bit;
  }
  void note_sent(wire::Link link) {
    if (pending_ == 0) {
      overtaken_ = 0;
      return;
    }
    last_[wire::index_of(link.priority())] = static_cast<std::uint8_t>(link.index());
    const bool overtook = (pending_ & ~kAhead[link.index()]) != 0;
    overtaken_ = overtook ? overtaken_ + 1 : 0;
  }

  LinkMask pending_ = 0;         ///< Links of which a message waits for a path,
  LinkMask kept_ = 0;            ///< and of which any is kept.
  std::uint32_t overtaken_ = 0;  ///< So many went in a row while a less urgent one waited.
  LinkMask owed_ = 0;            ///< Links that owe an acknowledgement.
  bool is_lossless_ = false;
  std::array<std::uint8_t, wire::kClasses> last_ = {};  ///< Of each class the link that had its turn last.
  std::array<LinkSender, wire::kLinks> out_;
  std::array<LinkReceiver, wire::kLinks> in_;
};

}  // namespace hawser::proto
