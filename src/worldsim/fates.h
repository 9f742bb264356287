#pragma once

// Fates: which ranks of a run are gone or have left, who lost whom, and whom each of the rest must still reach. In a
// sparse world that depends on the ways between them.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "worldsim/actors.h"
#include "worldsim/realms.h"
#include "worldsim/verdict.h"
#include "worldsim/ways.h"

namespace hawser::worldsim {

class Fates {
 public:
  /// Two that lost each other for good.
  struct Parting {
    std::size_t one = 0, other = 0;
    Instant when;
    Ways::Ranks out = {};  ///< These ranks must be left out.
  };

  Fates(sim::Universe& universe, Verdict& verdict, Realms& realms, const Actors& actors)
      : universe_(universe), verdict_(verdict), realms_(realms), actors_(actors) {}

  /// The process is gone, or its rank closed without leaving.
  void on_gone(const Actor& actor);
  /// The process says that it leaves, after all that it called has ended well,
  void on_left(const Actor& actor);
  /// and relays nothing for others from now on: all that live have said the same.
  void on_out(const Actor& actor);
  /// Two ranks lose each other for good, and both reach all others: the higher one fails, and nobody else. In a sparse
  /// world they are neighbours: see Ways::note_lost.
  void on_parted(const Actor& one, const Actor& other);
  const std::optional<Parting>& parting() const { return parting_; }
  /// The world that all enter has this topology.
  void set_topology(const Topology& topology, std::size_t ranks);
  const Ways& ways() const { return ways_; }
  /// Which graph the actor goes by: it may have heard of a smaller one from a neighbour, or have made it by itself.
  void look_at_ways(const Actor& actor);
  /// From now on ranks may lose sight of each other though both live.
  void may_accuse() { may_accuse_ = true; }
  bool accuses() const { return may_accuse_ || ways_.were_apart(); }

  bool is_gone(std::size_t actor) const { return gone_.contains(actor); }
  /// In all worlds of the one that was opened, and that this one came from.
  bool all_live(const Realm& realm) const;
  bool has_gone(const Realm& realm) const;
  static bool has_left(const Realm& realm);
  bool has_left_alive(const Realm& realm) const;
  /// Nothing that this deed says to the rank, or to the rank of that name, reaches it any more.
  bool is_lost(const Deed& deed, std::uint32_t rank) const;
  bool has_lost(const Deed& deed, std::string_view name) const;

 private:
  void count_as_gone(const Actor& actor);
  void look_at_verdict(const Actor& actor);

  sim::Universe& universe_;
  Verdict& verdict_;
  Realms& realms_;
  const Actors& actors_;
  std::set<std::size_t> gone_;
  Ways ways_;
  Ways::Ranks left_;  ///< Actors that need not relay any more.
  bool may_accuse_ = false;
  std::optional<Parting> parting_;
};

}  // namespace hawser::worldsim
