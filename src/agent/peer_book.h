#pragma once

// PeerBook: the agent itself and the peers that it knows, by incarnation; and the incarnations that have died.
//
// Thread rule: thread-safe. Lifetime: a peer that was forgotten lives on as long as somebody refers to it.
// Bound: `limit` peers, the agent itself among them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <hawser/status.h>

#include "agent/departed.h"
#include "agent/peer_core.h"
#include "backend/backend.h"
#include "backend/peer_guard.h"
#include "base/mutex.h"

namespace hawser::agent {

class PeerBook {
 public:
  PeerBook(std::string agent, std::uint32_t limit) : agent_(std::move(agent)), limit_(limit) {}

  /// The agent itself. Before any other call; peers that are met later belong to the same Core.
  void open(std::shared_ptr<PeerCore> self);
  const std::shared_ptr<PeerCore>& self() const { return self_; }

  /// The peer of that incarnation, made if it was unknown. kBusy at the limit.
  Result<std::shared_ptr<PeerCore>> meet(const backend::Identity& who);
  /// Null: unknown.
  std::shared_ptr<PeerCore> known(const base::Id128& incarnation) const;
  /// True where the card of that incarnation is here, and has that key.
  bool expects(const backend::PeerClaim& claim) const;
  /// Without the agent itself.
  std::vector<std::shared_ptr<PeerCore>> all() const;
  /// Another peer of that incarnation may have been met meanwhile; it stays.
  void forget(const PeerCore& peer);
  void forget_all();

  /// The path to the peer said that the peer's agent died.
  void note_death(const PeerCore& peer, const Status& why);
  /// A session with it is up.
  void note_life(const PeerCore& peer);
  /// Of a card that lies in a directory in this version: how its agent died, or nothing when it may live.
  std::optional<Status> judge(const base::Id128& incarnation, std::uint64_t version);

 private:
  using Peers = std::unordered_map<base::Id128, std::shared_ptr<PeerCore>>;

  const std::string agent_;
  const std::uint32_t limit_;
  std::shared_ptr<PeerCore> self_;
  mutable base::Mutex mutex_;
  Peers peers_ HAWSER_GUARDED_BY(mutex_);                         ///< Without the agent itself.
  std::unique_ptr<Departed> departed_ HAWSER_GUARDED_BY(mutex_);  ///< Null until one died: it takes 0.7 KiB.
};

}  // namespace hawser::agent
