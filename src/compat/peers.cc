// What is known of other agents.

#include <algorithm>

#include "agent/inner.h"
#include "agent/inner_peers.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/try.h"
#include "compat/core.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr Duration kNoticeMax =
    std::chrono::milliseconds(100);  ///< A death on the same host is noticed in half of that.
constexpr Duration kConnectTimeout = std::chrono::seconds(10);

Status unknown_agent(std::string_view call, std::string_view name) {
  return refusal(NixlCode::kNotFound, call, base::format("no metadata of agent '{}' is loaded", name))
      .with_advice("load_remote_md with the metadata of that agent");
}

/// Null: whatever there is will do. What is of no bytes is everywhere.
template <typename Range>
bool has_all(const Book<Range>& book, const XferDescList* list) {
  if (list == nullptr) return true;
  typename Book<Range>::Cursor cursor(book, list->type());
  std::uint64_t offset = 0;
  return std::all_of(list->begin(), list->end(),
                     [&](const Desc& desc) { return desc.len == 0 || cursor.find(desc, &offset) != nullptr; });
}

}  // namespace

bool AgentCore::settle(Remote& remote) {
  if (remote.rival && agent::inner::outranks(remote.rival->peer, remote.peer)) {
    std::unique_ptr<Remote> winner = std::move(remote.rival);
    auto loser = std::make_unique<Remote>(std::move(remote));
    remote = std::move(*winner);
    remote.rival = std::move(loser);
  }
  const auto is_reached = [&] {
    return remote.peer.state() == PeerState::kUp &&
           agent::inner::born_of(remote.peer) > agent::inner::born_of(remote.rival->peer);
  };
  if (remote.rival && (remote.rival->peer.state() == PeerState::kDown || is_reached())) forget_rival(remote);
  return remote.peer.state() != PeerState::kDown;
}

void AgentCore::forget_rival(Remote& remote) {
  if (remote.rival->peer.state() != PeerState::kDown) (void)agent_->invalidate(remote.rival->peer);
  remote.rival.reset();
}

void AgentCore::await_end(std::string_view name, const wire::Card& younger) {
  std::optional<Peer> known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = remotes_.find(name);
    if (found != remotes_.end()) known = found->second.peer;
  }
  const auto is_up = [&] { return known->state() == PeerState::kUp; };
  const bool is_older = known && agent::inner::incarnation_of(*known) != younger.incarnation &&
                        agent::inner::born_of(*known) < younger.born;
  if (!is_older || !is_up()) return;
  (void)agent::inner::wait_until(
      *agent_, [&] { return !is_up(); }, agent::inner::now(*agent_) + kNoticeMax);
}

Result<Remote*> AgentCore::place_of(std::string_view call, std::string_view name, Peer peer) {
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return &remotes_.emplace(name, Remote(std::move(peer))).first->second;
  Remote& known = found->second;
  const Peer asked = peer;
  if (!settle(known)) known = Remote(std::move(peer));  // A successor of one that is gone begins anew.
  if (core_of(known.peer) == core_of(asked)) return &known;
  if (known.rival && core_of(known.rival->peer) != core_of(asked)) {
    if (agent::inner::outranks(known.rival->peer, asked)) return outranked(call, known.peer);
    forget_rival(known);
  }
  if (!known.rival) known.rival = std::make_unique<Remote>(std::move(peer));
  (void)settle(known);
  if (core_of(known.peer) == core_of(asked)) return &known;
  return known.rival ? Result<Remote*>(known.rival.get()) : outranked(call, known.peer);
}

Status AgentCore::outranked(std::string_view call, const Peer& chosen) {
  const bool is_up = chosen.state() == PeerState::kUp;
  return refusal(NixlCode::kNotAllowed, call,
                 base::format("this is metadata of another process called '{}' than the one that {}", chosen.name(),
                              is_up ? "this agent is connected to" : "started last"))
      .with_peer(chosen.name())
      .with_advice("invalidate_remote_md first, if the other one is meant; it is tried when this one is gone");
}

std::optional<Peer> AgentCore::find_peer(std::string_view name) {
  if (!agent_) return std::nullopt;
  if (name == name_) return agent_->self();
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return std::nullopt;
  if (settle(found->second)) return found->second.peer;
  // It died or was restarted; whoever asks again is told to load its new metadata.
  remotes_.erase(found);
  return std::nullopt;
}

Result<Peer> AgentCore::need_peer(std::string_view call, std::string_view name) {
  const std::lock_guard lock(mutex_);
  std::optional<Peer> peer = find_peer(name);
  if (!peer) return unknown_agent(call, name);
  return std::move(*peer);
}

Status AgentCore::current(std::string_view call, const Peer& peer) {
  HAWSER_TRY(need_home(call));
  if (peer.is_self()) return {};
  const std::lock_guard lock(mutex_);
  const auto found = remotes_.find(peer.name());
  if (found == remotes_.end() || core_of(found->second.peer) != core_of(peer)) {
    return refusal(NixlCode::kNotFound, call,
                   base::format("agent '{}' is gone, or its metadata was loaded anew since", peer.name()))
        .with_advice("prepare the list again");
  }
  if (peer.state() != PeerState::kDown) return {};
  if (!settle(found->second)) remotes_.erase(found);
  return refusal(NixlCode::kRemoteDisconnect, call, base::format("agent '{}' is gone", peer.name()))
      .with_peer(peer.name())
      .with_advice("load the metadata of its successor");
}

bool AgentCore::check(std::string_view name, const XferDescList* list) {
  if (!need_home("check_remote_md").ok()) return false;
  if (has_backend()) poll_at_times();  // A peer that died is found out by who asks for it, too.
  const std::lock_guard lock(mutex_);
  // As in NIXL, an agent knows itself once it has memory.
  if (name == name_) return !book_.entries().empty() && has_all(book_, list);
  return find_peer(name) && has_all(remotes_.find(name)->second.book, list);
}

Status AgentCore::invalidate(std::string_view name) {
  constexpr std::string_view kCall = "invalidate_remote_md";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  if (name == name_) return refusal(NixlCode::kInvalidParam, kCall, "an agent cannot forget itself");
  return let_go(kCall, name);
}

Status AgentCore::invalidate_one(std::string_view name, const base::Id128& incarnation) {
  constexpr std::string_view kCall = "invalidate_remote_md";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return unknown_agent(kCall, name);
  Remote& known = found->second;
  if (known.rival && agent::inner::incarnation_of(known.rival->peer) == incarnation) forget_rival(known);
  if (agent::inner::incarnation_of(known.peer) != incarnation) return {};
  if (!known.rival) return let_go(kCall, name);
  const Peer gone = known.peer;
  const std::unique_ptr<Remote> successor = std::move(known.rival);
  known = std::move(*successor);
  const Status status = agent_->invalidate(gone);
  return status.ok() ? status : refusal(NixlCode::kBackend, kCall, "the peer is not let go", status);
}

Status AgentCore::let_go(std::string_view call, std::string_view name) {
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return unknown_agent(call, name);
  if (found->second.rival) forget_rival(found->second);
  const Peer peer = found->second.peer;
  remotes_.erase(found);
  const Status status = agent_->invalidate(peer);
  return status.ok() ? status : refusal(NixlCode::kBackend, call, "the peer is not let go", status);
}

Status AgentCore::drop(std::string_view name, std::string_view label, const std::function<bool()>& is_wanted) {
  constexpr std::string_view kCall = "fetch_remote_md";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  if (!is_wanted()) {
    return Status(Code::kCancelled, base::format("{}: agent '{}' was invalidated meanwhile", kCall, name));
  }
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return unknown_agent(kCall, name);
  Remote& remote = found->second;
  if (label.empty()) return remote.has_main ? let_go(kCall, name) : Status();  // Else a successor's labels are there.
  if (remote.rival) remote.rival->drop(label);
  if (!remote.labels.contains(label)) return {};
  remote.drop(label);
  return remote.labels.empty() && !remote.has_main ? let_go(kCall, name) : Status();
}

std::vector<std::string> AgentCore::remote_names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, remote] : remotes_) names.push_back(name);
  return names;
}

Status AgentCore::connect(std::string_view name) {
  constexpr std::string_view kCall = "make_connection";
  HAWSER_TRY(need_home(kCall));
  HAWSER_TRY_ASSIGN(const Peer peer, need_peer(kCall, name));
  if (peer.is_self()) return {};
  const Status status = peer.connect(kConnectTimeout);
  return status.ok() ? status : refusal(NixlCode::kBackend, kCall, base::format("to agent '{}'", name), status);
}

}  // namespace compat
HAWSER_NAMESPACE_END
