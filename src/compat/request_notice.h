#pragma once

// RequestNotice: what a request tells its peer: with its data where there is room for that, else after it.
//
// A long notification begins before its data, and what it has sent is dropped at the peer unless its end is told.
//
// Thread rule: the request's lock. Lifetime: the sender, the peer's handle and the clock outlive it.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <hawser/peer.h>
#include <hawser/time.h>

#include "compat/notification_sender.h"
#include "compat/outgoing.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class RequestNotice {
 public:
  /// How long it waits for room in its target's inbox, once the data is there.
  static constexpr Duration kRoomPatience = std::chrono::seconds(10);

  RequestNotice(NotificationSender& sender, const Peer& peer, const Clock& clock)
      : sender_(sender), peer_(peer), clock_(clock) {}

  /// What is told from the next post on; nothing: the peer is told nothing. Only after `end`.
  void set(std::optional<std::string> text) { text_ = std::move(text); }
  bool has_text() const { return text_.has_value(); }
  /// A post begins: it is told with the data, if there is any.
  void begin() { is_apart_ = is_told_ = false; }

  /// It is told with the data.
  bool goes_along() const { return has_text() && !is_apart_; }
  /// What goes along. kBusy: not yet.
  Result<std::string> carried();
  /// There was no room: the data goes without it.
  void go_apart();
  /// The data is there. True: there is no room yet. False: the peer is told.
  Result<bool> tell();
  /// All is told that was to be, or goes along.
  bool is_settled() const { return !is_apart_ || is_told_; }
  /// It went along, and its data is there: the inbox had room.
  void came_along() { sender_.room_watch().room(peer_); }

  /// Some of it is under way: others may wait for that.
  bool is_long() const { return body_.has_value(); }
  /// Sends what there is room for, of a long one that goes apart. What fails here fails again when the data is there.
  void pump();
  /// How much of it is sent, while there is some that could be. `is_moving`: the data is not there yet.
  std::optional<std::size_t> sending(bool is_moving) const;
  /// The post is over, or given up. `came`: the data is there, and what went along with it.
  void end(bool came);
  /// In a child of the process that began it: the rest is the parent's.
  void disown();

 private:
  void found_room();

  NotificationSender& sender_;
  const Peer& peer_;
  const Clock& clock_;
  std::optional<std::string> text_;
  std::optional<LongNotification> body_;  ///< Of the text, where it does not go in one.
  bool is_apart_ = false;                 ///< The data goes without it.
  bool is_told_ = false;                  ///< The peer was told, after the data.
  Instant room_until_;                    ///< Until then it waits for room.
};

}  // namespace compat
HAWSER_NAMESPACE_END
