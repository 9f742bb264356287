#include "agent/engine_host.h"

#include <utility>

#include "agent/core.h"

namespace hawser::agent {

Result<std::shared_ptr<PeerCore>> EngineHost::meet(const backend::Identity& who) { return core_.peer_book.meet(who); }

void EngineHost::forget(const PeerCore& peer) { core_.forget(peer); }

void EngineHost::note_death(const PeerCore& peer, const Status& why) { core_.peer_book.note_death(peer, why); }

void EngineHost::note_life(const PeerCore& peer) { core_.peer_book.note_life(peer); }

Status EngineHost::down_status(PeerCore& peer) const { return agent::down_status(peer); }

Status EngineHost::gone_status(const PeerCore& peer, const Status& cause) const {
  return agent::gone_status(peer, cause);
}

void EngineHost::keep_totals(const Session& session) { core_.past.add(session.flow, session.latency); }

std::uint64_t EngineHost::own_revision() const { return core_.own_card.revision(); }

Result<std::string> EngineHost::own_since(std::uint64_t revision) const { return core_.own_card.since(revision); }

std::uint64_t EngineHost::known_revision(PeerCore& peer) const { return agent::known_revision(peer); }

Result<LoadedCard> EngineHost::load(std::span<const std::byte> bytes) {
  Result<CardIntake::Loaded> loaded = core_.card_intake.load(bytes);
  if (!loaded) return loaded.error();
  return LoadedCard{.peer = std::move(loaded->peer), .change = std::move(loaded->change)};
}

void EngineHost::renew(OpenBackend& backend) { core_.renew_extras(backend); }

void EngineHost::hint(CompletionKind kind, std::uint64_t cookie) { core_.queues.hint(kind, cookie); }

void EngineHost::wake() { core_.lane.news(); }

}  // namespace hawser::agent
