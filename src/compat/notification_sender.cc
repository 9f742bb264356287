#include "compat/notification_sender.h"

#include <utility>

#include "base/format.h"
#include "compat/parts.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

Status NotificationSender::check_length(std::string_view call, std::string_view text) {
  if (text.size() <= kNotificationMax) return {};
  return refusal(NixlCode::kNotSupported, call,
                 base::format("a notification of {} bytes is longer than {}", text.size(), kNotificationMax))
      .with_advice("send what is that long as a transfer, and a notification that tells of it");
}

Status NotificationSender::send(const Peer& peer, std::string_view text, const Pause& pause, const Advance& advance) {
  if (!goes_in_one(text)) return send_long(peer, text, pause, advance);
  return is_marked(text) ? send_one(peer, encode_part({.bytes = text}), pause) : send_one(peer, text, pause);
}

/// Waits for room a little. False: there was none for too long. `begun`: when the call was.
bool NotificationSender::wait_for_room(const Peer& peer, Instant begun, const Pause& pause) {
  const Instant now = Clock::steady().now();
  const Instant since = room_watch_.no_room(peer, now);
  if (now >= since + kInboxPatience && now >= begun + kCallPatience) return false;
  pause(std::chrono::milliseconds(1));
  return true;
}

Status NotificationSender::send_one(const Peer& peer, std::string_view text, const Pause& pause) {
  Status status = peer.notify(text);
  if (status.code() == Code::kBusy) {
    const Instant begun = Clock::steady().now();
    while (status.code() == Code::kBusy && wait_for_room(peer, begun, pause)) status = peer.notify(text);
  }
  if (status.ok()) room_watch_.room(peer);
  return status;
}

Status NotificationSender::send_long(const Peer& peer, std::string_view text, const Pause& pause,
                                     const Advance& advance) {
  LongNotification parts(outgoing_, peer, text);
  const Instant begun = Clock::steady().now();
  Status status = parts.pump();
  std::size_t before = 0;
  while (status.code() == Code::kBusy && Clock::steady().now() < begun + kLongPatience) {
    if (parts.sent() != std::exchange(before, parts.sent())) room_watch_.room(peer);
    if (!wait_for_room(peer, begun, pause)) return status;
    advance();
    status = parts.pump();
  }
  if (status.ok()) status = send_one(peer, parts.reference(), pause);
  if (status.ok()) parts.told();
  return status;
}

}  // namespace compat
HAWSER_NAMESPACE_END
