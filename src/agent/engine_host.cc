#include "agent/engine_host.h"

#include <array>
#include <cstddef>
#include <utility>

#include "agent/core.h"

namespace hawser::agent {

Result<std::shared_ptr<PeerCore>> EngineHost::meet(const backend::Identity& who) { return core_.peer_book.meet(who); }

void EngineHost::forget(const PeerCore& peer) { core_.forget(peer); }

void EngineHost::note_death(const PeerCore& peer, const Status& why) { core_.peer_book.note_death(peer, why); }

void EngineHost::note_life(const PeerCore& peer) { core_.peer_book.note_life(peer); }

bool EngineHost::speaks_for(PeerCore& peer, const backend::Identity& who) {
  constexpr std::array<std::byte, 32> kNone = {};
  std::array<std::byte, 32> in_card;
  {
    const base::MutexLock lock(peer.use().mutex);
    in_card = peer.use().ticket.public_key;
  }
  if (in_card == kNone || who.public_key == kNone || in_card == who.public_key) return true;
  core_.peer_guard->refused(backend::Quota::kName, who.name, "its incarnation has another key in the card that is here",
                            core_.now());
  return false;
}

void EngineHost::note_state(const PeerCore& peer, PeerState state) {
  const bool is_live = state == PeerState::kUp || state == PeerState::kSuspect;
  if (!peer.is_self) core_.peer_guard->note_session(peer.incarnation, peer.name, is_live);
}

void EngineHost::note_refusal(backend::Quota quota, std::string_view peer, const Status& why) {
  core_.peer_guard->refused(quota, peer, why.message(), core_.now());
}

Status EngineHost::down_status(PeerCore& peer) const { return agent::down_status(peer); }

Status EngineHost::gone_status(const PeerCore& peer, const Status& cause) const {
  return agent::gone_status(peer, cause);
}

void EngineHost::keep_totals(const Session& session) {
  assume_in_lane();  // The engine's rule.
  core_.past.add(session.flow, session.latency);
}

std::uint64_t EngineHost::own_revision() const { return core_.own_card.revision(); }

Result<std::string> EngineHost::own_since(std::uint64_t revision) const { return core_.own_card.since(revision); }

std::uint64_t EngineHost::known_revision(PeerCore& peer) const { return agent::known_revision(peer); }

Result<LoadedCard> EngineHost::load(std::span<const std::byte> bytes, const PeerCore& owner) {
  Result<wire::Card> card = wire::decode_card(bytes);
  if (!card) return card.error();
  // Before anything is taken from it: nobody changes what is known of another.
  if (card->incarnation != owner.incarnation) {
    return Status(Code::kCorrupt, "the peer sent a card that is not its own");
  }
  const std::uint64_t base = card->base_revision;
  Result<CardIntake::Loaded> loaded = core_.card_intake.load(*std::move(card));
  if (!loaded) return loaded.error();
  return LoadedCard{.peer = std::move(loaded->peer), .change = std::move(loaded->change), .base = base};
}

void EngineHost::renew(OpenBackend& backend) { core_.renew_extras(backend); }

base::Id128 EngineHost::make_key() { return core_.make_key(); }

void EngineHost::hint(CompletionKind kind, std::uint64_t cookie) { core_.queues.hint(kind, cookie); }

void EngineHost::wake() { core_.lane.news(); }

}  // namespace hawser::agent
