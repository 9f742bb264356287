// What a request tells its peer: with its data where there is room for that, else after it.

#include "base/format.h"
#include "compat/request.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// How long a post waits for room in its target's inbox, before it leaves the rest to who looks.
constexpr Duration kPartPatience = std::chrono::milliseconds(50);

}  // namespace

void RequestCore::end_notice() {
  if (body && (is_told || (!is_apart && transfer && transfer->done() && transfer->status().ok()))) body->told();
  body.reset();
  core->leave_long(this);
}

/// What goes to the peer for `notif`. kBusy: not yet.
Result<std::string> RequestCore::carried() {
  if (goes_in_one(*notif)) return is_marked(*notif) ? encode_part({.bytes = *notif}) : *notif;
  if (!body) {
    body.emplace(core->outgoing(), peer, *notif);
    core->join_long(this);
  }
  const std::size_t before = body->sent();
  const Status status = body->pump();
  if (body->sent() != before) found_room();
  if (!status.ok()) return status;
  return body->reference();
}

/// The data goes without its notification, which follows when the data is there.
void RequestCore::tell_later() {
  is_apart = true;
  room_until = Clock::steady().now() + kRoomPatience;
}

void RequestCore::found_room() {
  core->room_watch().room(peer);
  room_until = Clock::steady().now() + kRoomPatience;
}

/// The data is there. True: there is no room yet. False: the peer is told.
Result<bool> RequestCore::tell_now() {
  const Result<std::string> text = carried();
  const Status status = text ? peer.notify(*text) : text.error();
  is_told = status.ok();
  if (is_told) {
    found_room();
    return false;
  }
  if (status.code() != Code::kBusy) return status;
  const Instant now = Clock::steady().now();
  core->room_watch().no_room(peer, now);
  if (now < room_until) return true;
  constexpr auto kSeconds = std::chrono::duration_cast<std::chrono::seconds>(kRoomPatience).count();
  return Status(Code::kBusy, base::format("the data is there, but the inbox of agent '{}' had no room for the "
                                          "notification for {} s",
                                          peer.name(), kSeconds))
      .with_peer(peer.name())
      .with_buffer(BufferState::kComplete)
      .with_advice("the peer must take its notifications; then post again, or send the notification alone");
}

std::optional<std::size_t> RequestCore::sending() const {
  const std::lock_guard lock(mutex);
  if (!is_apart || is_told || !refused.ok()) return std::nullopt;
  if (body && body->sent() < notif->size()) return body->sent();
  if (transfer && !transfer->done()) return std::nullopt;
  return notif->size();
}

/// Some clients post and wait for the peer's word alone, so what it is to be told goes out now where it can.
Result<bool> RequestCore::send_on() {
  Result<bool> answer = true;
  std::size_t before = sending().value_or(0);  // What went by now was told of.
  for (auto sent = sending(); answer && *answer && sent; sent = sending()) {
    const Instant now = Clock::steady().now();
    if (*sent != before) core->room_watch().room(peer);
    before = *sent;
    if (now >= core->room_watch().no_room(peer, now) + kPartPatience) break;
    (void)core->agent().wait(std::chrono::milliseconds(1));
    answer = look();
  }
  return answer;
}

}  // namespace compat
HAWSER_NAMESPACE_END
