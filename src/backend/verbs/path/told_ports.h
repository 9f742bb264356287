#pragma once

// ToldPorts: what both ends of a path told each other of their ports, and what follows from it: which ports are joined
// to rails, and which addresses of the peer's an attempt to connect may use.
//
// Which ports there are is told once: queue pairs name them by their places. Ports that came later are none of this
// path's. Ports are told again when their addresses change, and then nothing else of them counts.
//
// Thread rule: one thread at a time. Values; no I/O.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/verbs/devices/nic.h"
#include "backend/verbs/devices/pairing.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

class ToldPorts {
 public:
  // Ours.
  /// They are told for the first time: for each whether it is not there. It has its place for the keys' sake.
  void begin(std::vector<bool> are_away) {
    were_away_ = std::move(are_away);
    is_begun_ = true;
  }
  /// Ports that this end had then: the peer knows of no others.
  std::size_t count() const { return were_away_.size(); }
  bool was_away(std::size_t lane) const { return were_away_[lane]; }
  /// Their addresses changed: they are due to be told again, if they were told.
  void change() { is_due_ = is_begun_; }
  bool is_due() const { return is_due_; }
  void told() { is_due_ = false; }

  // The peer's.
  /// True: for the first time. Later only addresses count, and only where the ports are the same.
  bool take(const wire::RdmaPorts& told);
  bool is_known() const { return !peers_.empty(); }
  /// Of the slower of both; 0: unknown.
  std::uint64_t rail_speed(std::uint64_t own_mbit_per_s, std::uint32_t remote) const;
  /// Whether the peer may ask for a queue pair between these: its port and ours.
  bool admits(std::uint32_t remote, std::uint32_t lane) const {
    return remote < peers_.size() && lane < count() && !were_away_[lane];
  }

  /// `ours`: all that were told, and whether each is away now. Never empty; errors: why_no_rails.
  Result<std::vector<Rail>> rails(std::vector<RailPort> ours, const std::vector<bool>& are_away,
                                  const Pairing& pairing) const;
  /// Those addresses that the peer may use for a queue pair: the one that it chose, where it opened the path.
  std::vector<Gid> peer_gids(std::uint32_t remote, bool inbound, const wire::GidBytes& chosen) const;
  /// Addresses of the peer's that its attempts go through, one after the other; 0: nothing is known of that port.
  std::size_t ways_of_peer(std::uint32_t remote, std::span<const Gid> own) const;
  /// Pairs of addresses that the opener's attempts go through, one after the other.
  std::uint32_t ways(std::uint32_t remote, std::span<const Gid> own, const std::string& own_netdev) const;

 private:
  std::vector<bool> were_away_;
  bool is_begun_ = false;
  bool is_due_ = false;
  std::vector<wire::RdmaPort> peers_;
};

}  // namespace hawser::backend::verbs
