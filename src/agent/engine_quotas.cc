// Peers that are refused because of a bound: they are told which one, so that their users learn it.

#include <algorithm>
#include <array>

#include "agent/core.h"
#include "agent/engine.h"

namespace hawser::agent {
namespace {

/// As a peer is told it: what was refused, and what to do.
std::string words_of(const Status& why) {
  std::string text = std::string(why.message()) + "; " + std::string(why.advice());
  text.resize(std::min(text.size(), wire::kByeTextMax));
  return text;
}

}  // namespace

/// A path of a peer that is not taken in.
void Engine::turn_away(std::size_t backend, const backend::PortEvent& event, const Status& why, Instant now) {
  core_.guard->refused(backend::Quota::kPeers, event.peer->name, why.message(), now);
  std::array<std::byte, wire::kHeadMax> buffer;
  const std::string text = words_of(why);
  const auto head = wire::encode(wire::Bye{.code = Code::kBusy, .text = text}, buffer);
  // Without room for it the path just ends.
  static_cast<void>(event.path->send(Priority::kRealtime, head, std::as_bytes(std::span(text))));
  release(backend, event.path);
}

/// Whether the key that the path's peer has is the one in the card of the incarnation that it claims to be.
bool Engine::speaks_for(PeerCore& peer, const backend::Identity& who, Instant now) {
  constexpr std::array<std::byte, 32> kNone = {};
  std::array<std::byte, 32> in_card;
  {
    const base::MutexLock lock(peer.mutex);
    in_card = peer.ticket.public_key;
  }
  if (in_card == kNone || who.public_key == kNone || in_card == who.public_key) return true;
  core_.guard->refused(backend::Quota::kName, who.name, "its incarnation has another key in the card that is here",
                       now);
  return false;
}

/// What the peer has sent is beyond a quota; its session ends. Returns why.
Status Engine::over_quota(Session& session, const Status& why, Instant now) {
  core_.guard->refused(backend::Quota::kRegions, session.peer->name, why.message(), now);
  std::array<std::byte, wire::kHeadMax> buffer;
  const std::string text = words_of(why);
  const auto head = wire::encode(wire::Bye{.code = Code::kBusy, .text = text}, buffer);
  static_cast<void>(send_plain(session, head, std::as_bytes(std::span(text))));
  return why;
}

}  // namespace hawser::agent
