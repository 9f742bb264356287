// Notifications, out and in.

#include <algorithm>

#include "agent/core.h"
#include "base/format.h"
#include "base/try.h"
#include "compat/core.h"
#include "compat/request.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// How long a notification waits for room in its target's inbox; a long one, for room for its next part.
constexpr Duration kInboxPatience = std::chrono::seconds(2);
/// And how long a long one may take in all.
constexpr Duration kLongPatience = std::chrono::seconds(60);

/// NIXL's clients take "sent" for granted, so a full inbox is waited for, for a while.
Status tell(hawser::Agent& agent, const Peer& peer, std::string_view text) {
  Status status = peer.notify(text);
  if (status.code() != Code::kBusy) return status;
  const Instant end = Clock::steady().now() + kInboxPatience;
  while (status.code() == Code::kBusy && Clock::steady().now() < end) {
    (void)agent.wait(std::chrono::milliseconds(1));
    status = peer.notify(text);
  }
  return status;
}

Status tell_long(AgentCore& core, const Peer& peer, std::string_view text) {
  LongNotification parts(core.outgoing(), peer, text);
  const Instant last = Clock::steady().now() + kLongPatience;
  Instant end = Clock::steady().now() + kInboxPatience;
  Status status = parts.pump();
  while (status.code() == Code::kBusy && Clock::steady().now() < std::min(end, last)) {
    (void)core.agent().wait(std::chrono::milliseconds(1));
    core.advance();
    const std::size_t before = parts.sent();
    status = parts.pump();
    if (parts.sent() != before) end = Clock::steady().now() + kInboxPatience;
  }
  if (status.ok()) status = tell(core.agent(), peer, parts.reference());
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
    status = is_marked(text) ? tell(*agent_, peer, encode_part({.bytes = text})) : tell(*agent_, peer, text);
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
  const void* const key = one.peer.core().get();
  const auto at = incoming_.try_emplace(key, one.peer, &incoming_budget_).first;
  Assembler::Taken taken = at->second.assembler.take(one.text);
  if (taken.text) into[std::string(one.peer.name())].push_back(std::move(*taken.text));
  if (!taken.lost.ok()) {
    HAWSER_LOG(log_, kWarn, "get_notifs: from agent '{}': {}", one.peer.name(), taken.lost.to_string());
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
  return agent_->core()->inbox.has_notifications() || has_incoming_.load(std::memory_order_acquire);
}

Status AgentCore::take_notifications(NotificationMap& into) {
  HAWSER_TRY(need_backend("get_notifs"));
  poll();
  advance();
  // Most calls find nothing, and should cost no more than that.
  if (!agent_->core()->inbox.has_notifications() && !has_incoming_.load(std::memory_order_acquire)) return {};
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
