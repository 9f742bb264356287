#pragma once

// Link: one of the sequences of messages of a session. Each link has its own numbers, acknowledgements and replay, so a
// message waits for none of another link.
//
// A class (Priority) has one or more links. Its first one carries the library's own messages. Messages on the channels
// of users are spread over groups: channel % 4 of realtime, channel % 2 of bulk. A channel keeps its class, and so its
// link, for as long as a session lasts: messages on a channel are in order.
//
// Thread rule: values.

#include <array>
#include <cstddef>
#include <cstdint>

#include <hawser/peer.h>
#include <hawser/transfer.h>

namespace hawser::wire {

inline constexpr std::uint32_t kUserChannelMin = 16;  ///< Lower ones are the library's own.
/// On these a head of so many bytes may come before as much as a user may send.
inline constexpr std::size_t kOwnHeadMax = 64;
inline constexpr std::size_t kOwnMessageMax = kOwnHeadMax + kMessageMax;
/// Bytes of one message on that channel.
constexpr std::size_t message_max(std::uint32_t channel) {
  return channel >= kUserChannelMin ? kMessageMax : kOwnMessageMax;
}
inline constexpr std::size_t kClasses = 3;  ///< Values of Priority.
constexpr std::size_t index_of(Priority priority) { return static_cast<std::size_t>(priority); }

inline constexpr std::size_t kLinks = 8;  ///< All values of three bits.
inline constexpr std::uint32_t kRealtimeGroups = 4;
inline constexpr std::uint32_t kBulkGroups = 2;

class Link {
 public:
  /// The first one of the class.
  constexpr Link(Priority priority) : index_(kFirst[index_of(priority)]) {}  // NOLINT(google-explicit-constructor)
  /// That of a channel which has this class.
  constexpr Link(Priority priority, std::uint32_t channel) : Link(priority) {
    if (priority == Priority::kRealtime && channel >= kUserChannelMin) {
      index_ = static_cast<std::uint8_t>(index_ + 1 + channel % kRealtimeGroups);
    } else if (priority == Priority::kBulk && channel >= kUserChannelMin) {
      index_ = static_cast<std::uint8_t>(index_ + channel % kBulkGroups);
    }
  }
  /// `index` is less than kLinks.
  static constexpr Link at(std::size_t index) {
    Link link(Priority::kCritical);
    link.index_ = static_cast<std::uint8_t>(index);
    return link;
  }

  /// More urgent classes come first.
  constexpr std::size_t index() const { return index_; }
  constexpr Priority priority() const {
    return index_ < kFirst[1] ? Priority::kCritical : index_ < kFirst[2] ? Priority::kRealtime : Priority::kBulk;
  }
  friend constexpr bool operator==(Link, Link) = default;

  /// Of each class the index of its first link; behind them the number of all.
  static constexpr std::array<std::uint8_t, kClasses + 1> kFirst = {0, 1, 2 + kRealtimeGroups, kLinks};

 private:
  std::uint8_t index_;
};
static_assert(Link::kFirst[index_of(Priority::kBulk)] + kBulkGroups == kLinks);

}  // namespace hawser::wire
