#pragma once

// AtomicUser: a user's atomic operations: on words that several of them share, on words that are none of theirs, and
// again on words of regions and peers that may be gone.
//
// Thread rule: one thread. Lifetime: the run's.

#include "sim/peer_choice.h"

namespace hawser::simulation {

class AtomicUser {
 public:
  /// Draws from `rng`, the user's.
  AtomicUser(Theater& theater, base::Rng& rng) : theater_(theater), rng_(rng), peers_(theater, rng) {}

  /// Some operations, of any kind.
  void ask(Life& life);
  /// One that is under way.
  void cancel(Life& life);

 private:
  Area* pick_area(Life& to, bool bait);
  void ask_one(Life& life, Life& to, Area& area, const RemoteRange& range);
  void ask_again(Life& life);
  void ask_bait(Life& life, Life& to);
  void add_own(Life& life);

  Theater& theater_;
  base::Rng& rng_;
  PeerChoice peers_;
};

}  // namespace hawser::simulation
