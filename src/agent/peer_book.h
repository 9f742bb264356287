#pragma once

// PeerBook: the agent itself and the peers that it knows, by incarnation; and the incarnations that have died.
//
// Thread rule: thread-safe. Lifetime: a peer that was forgotten lives on as long as somebody refers to it.
// Bound: `limit` peers, the agent itself among them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
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
  struct Met {
    std::shared_ptr<PeerCore> peer;
    bool is_new = false;  ///< It was made, and has that card.
  };
  /// The same, by a card that names it.
  Result<Met> meet(const CardRef& card);
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
  // A set, because a peer has its incarnation: a place takes 32 bytes of heap, and its share of the buckets. `noexcept`
  // keeps it from having the hash, too.
  struct ByIncarnation {
    using is_transparent = void;
    static const base::Id128& of(const base::Id128& id) noexcept { return id; }
    static const base::Id128& of(const std::shared_ptr<PeerCore>& peer) noexcept { return peer->incarnation; }
  };
  struct Hash : ByIncarnation {
    std::size_t operator()(const auto& one) const noexcept { return std::hash<base::Id128>()(of(one)); }
  };
  struct Equal : ByIncarnation {
    bool operator()(const auto& one, const auto& other) const noexcept { return of(one) == of(other); }
  };
  using Peers = std::unordered_set<std::shared_ptr<PeerCore>, Hash, Equal>;

  /// `make` makes it where it is unknown.
  template <typename Make>
  Result<Met> meet(const base::Id128& incarnation, std::string_view name, std::uint64_t born, const Make& make);

  const std::string agent_;
  const std::uint32_t limit_;
  std::shared_ptr<PeerCore> self_;
  mutable base::Mutex mutex_;
  Peers peers_ HAWSER_GUARDED_BY(mutex_);                         ///< Without the agent itself.
  std::unique_ptr<Departed> departed_ HAWSER_GUARDED_BY(mutex_);  ///< Null until one died: it takes 0.7 KiB.
};

}  // namespace hawser::agent
