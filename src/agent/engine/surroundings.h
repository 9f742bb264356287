#pragma once

// What the engine's members ask of the agent around them. The core answers; tests have answers of their own.
//
// Thread rule: called under the lane's lock.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hawser/completion.h>
#include <hawser/peer.h>
#include <hawser/status.h>

#include "agent/card_store.h"
#include "backend/backend.h"
#include "backend/peer_guard.h"

namespace hawser::agent {

struct OpenBackend;
struct PeerCore;
struct Session;

/// The book of peers.
class PeerRegister {
 public:
  /// The peer of that incarnation, made if it was unknown. kBusy when there are too many.
  virtual Result<std::shared_ptr<PeerCore>> meet(const backend::Identity& who) = 0;
  virtual void forget(const PeerCore& peer) = 0;
  /// It died, by what its path said; or it is there.
  virtual void note_death(const PeerCore& peer, const Status& why) = 0;
  virtual void note_life(const PeerCore& peer) = 0;
  /// True where the key that a path has proven is the one in the card of the incarnation that it claims to be.
  virtual bool speaks_for(PeerCore& peer, const backend::Identity& who) = 0;
  /// The peer's session is in that state now: while it is up or suspect, its name is its own.
  virtual void note_state(const PeerCore& peer, PeerState state) = 0;
  /// It was refused because of a bound: for the counters and the log.
  virtual void note_refusal(backend::Quota quota, std::string_view peer, const Status& why) = 0;
  /// What a call about a peer that is down answers.
  virtual Status down_status(PeerCore& peer) const = 0;
  /// As `down_status`, where `cause` puts it down now.
  virtual Status gone_status(const PeerCore& peer, const Status& cause) const = 0;
  /// The session ends: what went over it stays in the agent's totals.
  virtual void keep_totals(const Session& session) = 0;

 protected:
  ~PeerRegister() = default;
};

/// A card that was taken in: whose it is, and what it changed.
struct LoadedCard {
  std::shared_ptr<PeerCore> peer;
  CardStore::Change change;
  std::uint64_t base = 0;  ///< The revision that it builds on. 0: on none.
};

/// This agent's card, and those of peers.
class Cards {
 public:
  virtual std::uint64_t own_revision() const = 0;
  /// What changed in this agent's card since that revision; all of it since 0.
  virtual Result<std::string> own_since(std::uint64_t revision) const = 0;
  virtual std::uint64_t known_revision(PeerCore& peer) const = 0;
  /// A card that `owner` sent. kNotFound: a delta on a card that is not here. kCorrupt: it is another's, and was not
  /// taken in. kBusy: it tells of more than a peer may.
  virtual Result<LoadedCard> load(std::span<const std::byte> bytes, const PeerCore& owner) = 0;
  /// What this backend says of regions in this agent's card has changed.
  virtual void renew(OpenBackend& backend) = 0;

 protected:
  ~Cards() = default;
};

/// Keys of regions.
class Keys {
 public:
  /// One that nobody can guess.
  virtual base::Id128 make_key() = 0;

 protected:
  ~Keys() = default;
};

/// Those that wait outside of the lane.
class Waiters {
 public:
  /// Completion queues hear of what else happened.
  virtual void hint(CompletionKind kind, std::uint64_t cookie) = 0;
  /// Something ended or changed that threads may wait for.
  virtual void wake() = 0;

 protected:
  ~Waiters() = default;
};

}  // namespace hawser::agent
