#pragma once

// PeerChoice: whom a user turns to, at random.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstddef>

#include "sim/theater.h"

namespace hawser::simulation {

class PeerChoice {
 public:
  /// Draws from `rng`, the user's.
  PeerChoice(Theater& theater, base::Rng& rng) : theater_(theater), rng_(rng) {}

  /// The life at another node, which `life` is introduced to if need be. Null: that did not work.
  Life* pick(Life& life) {
    const std::size_t node = rng_.below(theater_.nodes() - 1);
    Life& other = theater_.at(node < life.node ? node : node + 1);
    Bond& bond = life.bonds[&other];
    if (!bond.known) theater_.introduce(life, other);
    return bond.known && !theater_.judge().failed() ? &other : nullptr;
  }

 private:
  Theater& theater_;
  base::Rng& rng_;
};

}  // namespace hawser::simulation
