#include "compat/remotes.h"

#include <memory>
#include <utility>

#include "agent/inner_peers.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/try.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

Status unknown(std::string_view call, std::string_view name) {
  return refusal(NixlCode::kNotFound, call, base::format("no metadata of agent '{}' is loaded", name))
      .with_advice("load_remote_md with the metadata of that agent");
}

/// Another incarnation of the name than the copy's is `chosen`.
Status outranked(std::string_view call, const Peer& chosen) {
  const bool is_up = chosen.state() == PeerState::kUp;
  return refusal(NixlCode::kNotAllowed, call,
                 base::format("this is metadata of another process called '{}' than the one that {}", chosen.name(),
                              is_up ? "this agent is connected to" : "started last"))
      .with_peer(chosen.name())
      .with_advice("invalidate_remote_md first, if the other one is meant; it is tried when this one is gone");
}

}  // namespace

std::vector<std::string> Remotes::names() const {
  std::vector<std::string> names;
  for (const auto& [name, remote] : all_) names.push_back(name);
  return names;
}

/// Which of the incarnations of the name is talked to. False: none lives.
bool Remotes::settle(Remote& remote) {
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

void Remotes::forget_rival(Remote& remote) {
  if (remote.rival->peer.state() != PeerState::kDown) (void)invalidate_(remote.rival->peer);
  remote.rival.reset();
}

Remote* Remotes::find(std::string_view name) {
  const auto found = all_.find(name);
  if (found == all_.end()) return nullptr;
  if (settle(found->second)) return &found->second;
  all_.erase(found);
  return nullptr;
}

std::optional<Peer> Remotes::last_peer(std::string_view name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? std::optional<Peer>() : found->second.peer;
}

Status Remotes::current(std::string_view call, const Peer& peer) {
  const auto found = all_.find(peer.name());
  if (found == all_.end() || core_of(found->second.peer) != core_of(peer)) {
    return refusal(NixlCode::kNotFound, call,
                   base::format("agent '{}' is gone, or its metadata was loaded anew since", peer.name()))
        .with_advice("prepare the list again");
  }
  if (peer.state() != PeerState::kDown) return {};
  if (!settle(found->second)) all_.erase(found);
  return refusal(NixlCode::kRemoteDisconnect, call, base::format("agent '{}' is gone", peer.name()))
      .with_peer(peer.name())
      .with_advice("load the metadata of its successor");
}

/// Where the copy of that peer's belongs: it may be a rival's.
Result<Remote*> Remotes::place_of(std::string_view call, std::string_view name, Peer peer) {
  const auto found = all_.find(name);
  if (found == all_.end()) return &all_.emplace(name, Remote(std::move(peer))).first->second;
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

Status Remotes::enter(std::string_view call, std::string_view name, Peer peer, const RemoteCopy& copy,
                      std::string_view label) {
  HAWSER_TRY_ASSIGN(Remote* const remote, place_of(call, name, std::move(peer)));
  remote->enter(copy, label);
  const Remote& chosen = all_.find(name)->second;
  return remote == &chosen ? Status() : outranked(call, chosen.peer);
}

Status Remotes::let_go(std::string_view call, const Peer& peer) const {
  const Status status = invalidate_(peer);
  return status.ok() ? status : refusal(NixlCode::kBackend, call, "the peer is not let go", status);
}

Status Remotes::forget(std::string_view call, std::string_view name) {
  const auto found = all_.find(name);
  if (found == all_.end()) return unknown(call, name);
  if (found->second.rival) forget_rival(found->second);
  const Peer peer = found->second.peer;
  all_.erase(found);
  return let_go(call, peer);
}

Status Remotes::forget_one(std::string_view call, std::string_view name, const base::Id128& incarnation) {
  const auto found = all_.find(name);
  if (found == all_.end()) return unknown(call, name);
  Remote& known = found->second;
  if (known.rival && agent::inner::incarnation_of(known.rival->peer) == incarnation) forget_rival(known);
  if (agent::inner::incarnation_of(known.peer) != incarnation) return {};
  if (!known.rival) return forget(call, name);
  const Peer gone = known.peer;
  const std::unique_ptr<Remote> successor = std::move(known.rival);
  known = std::move(*successor);
  return let_go(call, gone);
}

Status Remotes::drop(std::string_view call, std::string_view name, std::string_view label) {
  const auto found = all_.find(name);
  if (found == all_.end()) return unknown(call, name);
  Remote& remote = found->second;
  if (label.empty()) return remote.has_main ? forget(call, name) : Status();  // Else a successor's labels are there.
  if (remote.rival) remote.rival->drop(label);
  if (!remote.labels.contains(label)) return {};
  remote.drop(label);
  return remote.labels.empty() && !remote.has_main ? forget(call, name) : Status();
}

}  // namespace compat
HAWSER_NAMESPACE_END
