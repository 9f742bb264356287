#pragma once

// Formation: finds the ranks of a world. Those that this rank has sessions with, all of them in a full world, it finds
// in a directory or a store, and connects to. The others' cards it gets from its neighbours.
//
// Thread rule: one thread, not under the lane.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hawser/world.h>

#include "runtime/formation_watch.h"
#include "runtime/rank_seat.h"

namespace hawser::runtime {

class Formation {
 public:
  /// All of them outlive it.
  Formation(RankSeat& seat, const WorldOptions& options, std::uint32_t rank, FormationWatch& watch)
      : seat_(seat), options_(options), rank_(rank), watch_(watch) {}

  /// By rank, or an error that lists those that did not come. `given`: who they are. Empty: that is to be found out.
  Result<std::vector<Peer>> find_all(std::span<const Peer> given, Instant until);

 private:
  bool has_store() const { return static_cast<bool>(options_.store.get); }
  std::string key_of(std::uint32_t rank) const;
  Duration left(Instant until) const;
  Status meet_given(std::vector<Peer>& ranks, std::span<const Peer> given, Instant until);
  Status leave_card();
  Status check_name(const Peer& peer, std::uint32_t rank, const std::string& source) const;
  Result<Peer> find(std::uint32_t rank, Instant until);
  Result<Peer> find_and_connect(std::uint32_t rank, Instant until);
  Result<Peer> get_and_connect(std::uint32_t rank, Instant until);
  Status meet(std::uint32_t rank, const Peer& peer);
  Status find_in_turns(std::vector<Peer>& ranks, std::vector<std::uint32_t> missing, Duration turn, Instant until);
  /// Of a full world: all others.
  Status find_each(std::vector<Peer>& ranks, Instant until);
  // Of a sparse world.
  Status find_neighbours(std::vector<Peer>& ranks, Instant until);
  Status begin_relaying();
  Status learn_others(std::vector<Peer>& ranks, Instant until);
  /// What a failed formation says.
  Status absent(const std::vector<std::uint32_t>& missing, const Status& cause) const;

  RankSeat& seat_;
  const WorldOptions& options_;
  const std::uint32_t rank_;
  FormationWatch& watch_;
};

}  // namespace hawser::runtime
