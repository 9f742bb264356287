#pragma once

// Roster: who the ranks of one world are. It tells a peer's rank here, and what each rank is in the world that was
// opened, which may be another one: groups and shrunk worlds have fewer ranks.
//
// Thread rule: constant once `open` has been called, which comes before anybody else looks. `own` and the root ranks
// may be looked at before.

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <hawser/peer.h>

namespace hawser::runtime {

class Roster {
 public:
  void set_own(std::uint32_t rank) { own_ = rank; }
  /// By rank.
  void set_root_ranks(std::vector<std::uint32_t> ranks) { root_ranks_ = std::move(ranks); }
  /// By rank: its agent is its program's, and outlives the world. Empty: none.
  void set_guests(std::vector<bool> guests) { guests_ = std::move(guests); }
  /// By rank; this one among them. Once.
  void open(std::vector<Peer> peers);

  std::uint32_t own() const { return own_; }
  /// 0: it is not open.
  std::uint32_t size() const { return static_cast<std::uint32_t>(peers_.size()); }
  const std::vector<Peer>& peers() const { return peers_; }
  const Peer& peer(std::uint32_t rank) const { return peers_[rank]; }
  const std::vector<std::uint32_t>& root_ranks() const { return root_ranks_; }
  std::uint32_t root_rank(std::uint32_t rank) const { return root_ranks_[rank]; }
  /// None: it is no rank of this world.
  std::optional<std::uint32_t> rank_of(const Peer& peer) const;
  bool is_guest(std::uint32_t rank) const { return rank < guests_.size() && guests_[rank]; }
  /// That rank of the world that was opened. None: it is not in this world.
  std::optional<std::uint32_t> rank_of_root(std::uint32_t root_rank) const;
  /// The sources of their messages (`source_of`).
  const std::unordered_set<const void*>& sources() const { return sources_; }

 private:
  std::uint32_t own_ = 0;
  std::vector<std::uint32_t> root_ranks_;
  std::vector<bool> guests_;
  std::vector<Peer> peers_;
  std::unordered_set<const void*> sources_;
  std::unordered_map<const void*, std::uint32_t> rank_by_source_;
};

}  // namespace hawser::runtime
