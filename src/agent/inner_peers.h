#pragma once

// The inner door, peers and cards: what layers of this library know of a peer beyond its public handle, and how they
// read and write cards piece by piece.
//
// Thread rule: thread-safe, without the lane's lock.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hawser/agent.h>

#include "agent/region.h"
#include "base/id128.h"
#include "wire/card.h"

namespace hawser::agent::inner {

const base::Id128& incarnation_of(const Peer& peer);
/// Orders the incarnations of a name (docs/wire.md, `born`). 0: no card and no hello told it yet.
std::uint64_t born_of(const Peer& peer);
/// Which of two incarnations of a name lives, for all that is known. See PeerCore::outranks.
bool outranks(const Peer& one, const Peer& other);
/// Why a peer that is down is down.
Status down_status(const Peer& peer);
/// Counts the cards that told of regions that are gone: what was looked up before has to be looked up again.
std::uint64_t regions_gone(const Peer& peer);
/// The region of that very id; null when the peer's cards say that it is closed, or none of them told of it.
std::shared_ptr<const RemoteRegion> find_remote(const Peer& peer, const RegionId& id);
/// Which of them `find_remote` would find.
std::vector<bool> are_known(const Peer& peer, std::span<const RegionId> ids);

/// The peer that the card is of, though nothing else of the card is taken. kInvalid, kBusy: see Agent::add_peer.
Result<Peer> meet(const Agent& agent, const wire::Card& card);
/// A card of the peer was loaded.
bool has_card(const Peer& peer);
/// As Agent::add_peer, but a peer that is down begins anew.
Result<Peer> take_anew(const Agent& agent, wire::Card card);

/// This agent's own card, appended to `out`, which may hold anything after an error.
Status append_card(const Agent& agent, std::string* out);
/// With these regions only.
Status append_card(const Agent& agent, std::span<const std::uint32_t> regions, std::string* out);

/// One open backend, and why it does not lead to a peer as far as was found out; good: it does, or was not tried yet.
struct Way {
  std::string backend;
  Status why;
};
std::vector<Way> ways_to(const Agent& agent, const Peer& peer);

}  // namespace hawser::agent::inner
