// Notifications, out and in.

#include <algorithm>
#include <utility>

#include "agent/inner.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/try.h"
#include "compat/core.h"
#include "compat/request.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// How long send_notif waits for room in its target's inbox, from when there was none: as a rule no time at all, for an
/// inbox takes very much unread.
constexpr Duration kInboxPatience = std::chrono::seconds(2);

/// And how long a long one may take in all.
constexpr Duration kLongPatience = std::chrono::minutes(1);

/// But each call at least so long: the peer may just have begun to read.
constexpr Duration kCallPatience = std::chrono::milliseconds(50);

/// Waits for room a little. False: there was none for too long. `begun`: when the call was.
bool wait_for_room(AgentCore& core, const Peer& peer, Instant begun) {
  const Instant now = Clock::steady().now();
  const Instant since = core.room_watch().no_room(peer, now);
  if (now >= since + kInboxPatience && now >= begun + kCallPatience) return false;
  (void)core.agent().wait(std::chrono::milliseconds(1));
  return true;
}

Status tell(AgentCore& core, const Peer& peer, std::string_view text) {
  Status status = peer.notify(text);
  if (status.code() == Code::kBusy) {
    const Instant begun = Clock::steady().now();
    while (status.code() == Code::kBusy && wait_for_room(core, peer, begun)) status = peer.notify(text);
  }
  if (status.ok()) core.room_watch().room(peer);
  return status;
}

Status tell_long(AgentCore& core, const Peer& peer, std::string_view text) {
  LongNotification parts(core.outgoing(), peer, text);
  const Instant begun = Clock::steady().now();
  Status status = parts.pump();
  std::size_t before = 0;
  while (status.code() == Code::kBusy && Clock::steady().now() < begun + kLongPatience) {
    if (parts.sent() != std::exchange(before, parts.sent())) core.room_watch().room(peer);
    if (!wait_for_room(core, peer, begun)) return status;
    core.advance();
    status = parts.pump();
  }
  if (status.ok()) status = tell(core, peer, parts.reference());
  if (status.ok()) parts.told();
  return status;
}

}  // namespace

Status AgentCore::notify(std::string_view name, std::string_view text) {
  constexpr std::string_view kCall = "gen_notif";
  HAWSER_TRY(need_backend(kCall));
  HAWSER_TRY_ASSIGN(const Peer peer, need_peer(kCall, name));
  Status status;
  if (!goes_in_one(text)) {
    HAWSER_TRY(check_length(kCall, text));
    status = tell_long(*this, peer, text);
  } else {
    status = is_marked(text) ? tell(*this, peer, encode_part({.bytes = text})) : tell(*this, peer, text);
  }
  return status.ok() ? status : refusal(NixlCode::kBackend, kCall, base::format("to agent '{}'", name), status);
}

void AgentCore::join_long(RequestCore* request) {
  const std::lock_guard lock(long_mutex_);
  long_.insert(request);
  long_count_.store(long_.size(), std::memory_order_release);
}

void AgentCore::leave_long(RequestCore* request) {
  if (long_count_.load(std::memory_order_acquire) == 0) return;
  if (!need_home("release_xfer_req").ok()) return;  // The mutex may be held by a thread that is not in this process.
  const std::lock_guard lock(long_mutex_);
  long_.erase(request);
  long_count_.store(long_.size(), std::memory_order_release);
}

void AgentCore::advance_all() {
  if (!need_home("get_xfer_status").ok()) return;
  const std::lock_guard lock(long_mutex_);
  const std::vector<RequestCore*> all(long_.begin(), long_.end());
  for (RequestCore* const each : all) {
    if (long_.contains(each)) each->try_look();
  }
}

Status AgentCore::check_length(std::string_view call, std::string_view text) {
  if (text.size() <= kNotificationMax) return {};
  return refusal(NixlCode::kNotSupported, call,
                 base::format("a notification of {} bytes is longer than {}", text.size(), kNotificationMax))
      .with_advice("send what is that long as a transfer, and a notification that tells of it");
}

void AgentCore::take_marked(const Notification& one, NotificationMap& into) {
  const void* const key = core_of(one.peer).get();
  const auto at = incoming_.try_emplace(key, one.peer, &incoming_budget_).first;
  Assembler::Taken taken = at->second.assembler.take(one.text);
  if (taken.text) into[std::string(one.peer.name())].push_back(std::move(*taken.text));
  if (!taken.lost.ok()) {
    const std::string line = base::format("get_notifs: from agent '{}': {}", one.peer.name(), taken.lost.to_string());
    const std::optional<std::uint64_t> held_back = line_gate_.pass(line, Clock::steady().now());
    if (held_back) HAWSER_LOG(log_, kWarn, "{}{}", line, base::LineGate::more(*held_back));
  }
  if (at->second.assembler.empty()) incoming_.erase(at);
}

/// Of peers that had gone before the last notification was taken.
void AgentCore::forget_parts(std::span<const void* const> gone) {
  for (const void* const key : gone) {
    const auto at = incoming_.find(key);
    if (at == incoming_.end()) continue;
    HAWSER_LOG(log_, kWarn, "get_notifs: agent '{}' is gone: what came of {} long notifications is dropped",
               at->second.peer.name(), at->second.assembler.bodies());
    incoming_.erase(at);
  }
}

bool AgentCore::may_have_notifications() const {
  if (!need_backend("get_notifs").ok() || !is_at_rest()) return true;
  return agent::inner::has_notifications(*agent_) || has_incoming_.load(std::memory_order_acquire);
}

Status AgentCore::take_notifications(NotificationMap& into) {
  HAWSER_TRY(need_backend("get_notifs"));
  poll();
  advance();
  // Most calls find nothing, and should cost no more than that.
  if (!agent::inner::has_notifications(*agent_) && !has_incoming_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(incoming_mutex_);
  std::vector<const void*> gone;
  for (const auto& [key, from] : incoming_) {
    if (from.peer.state() == PeerState::kDown) gone.push_back(key);
  }
  while (auto one = agent_->take_notification()) {
    if (is_marked(one->text)) {
      take_marked(*one, into);
    } else {
      into[std::string(one->peer.name())].push_back(std::move(one->text));
    }
  }
  forget_parts(gone);
  has_incoming_.store(!incoming_.empty(), std::memory_order_release);
  return {};
}

}  // namespace compat
HAWSER_NAMESPACE_END
