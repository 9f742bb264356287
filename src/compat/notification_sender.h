#pragma once

// NotificationSender: sends the notifications of send_notif, in as many as each takes (parts.h), and waits for room in
// the peer's inbox. Once a peer's inbox has had no room for kInboxPatience, a call does not wait for it much longer.
//
// Thread rule: thread-safe. Lifetime: outlives the requests that send by it.

#include <functional>
#include <string_view>

#include <hawser/peer.h>
#include <hawser/time.h>

#include "compat/outgoing.h"
#include "compat/room_watch.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class NotificationSender {
 public:
  /// How long it waits for room in an inbox, from when there was none: as a rule no time at all, for an inbox takes
  /// very much unread.
  static constexpr Duration kInboxPatience = std::chrono::seconds(2);
  /// And how long a long one may take in all.
  static constexpr Duration kLongPatience = std::chrono::minutes(1);
  /// But each call at least so long: the peer may just have begun to read.
  static constexpr Duration kCallPatience = std::chrono::milliseconds(50);

  /// What a call does while there is no room: it lets at most so much time pass,
  using Pause = std::function<void(Duration)>;
  /// and lets others get on, whose long notifications may be what fills the inbox.
  using Advance = std::function<void()>;

  /// kNotSupported when it is longer than the longest notification.
  static Status check_length(std::string_view call, std::string_view text);

  /// kBusy: there was no room for too long.
  Status send(const Peer& peer, std::string_view text, const Pause& pause, const Advance& advance);

  /// For what goes with a transfer.
  Outgoing& outgoing() { return outgoing_; }
  RoomWatch& room_watch() { return room_watch_; }

 private:
  bool wait_for_room(const Peer& peer, Instant begun, const Pause& pause);
  Status send_one(const Peer& peer, std::string_view text, const Pause& pause);
  Status send_long(const Peer& peer, std::string_view text, const Pause& pause, const Advance& advance);

  Outgoing outgoing_;
  RoomWatch room_watch_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
