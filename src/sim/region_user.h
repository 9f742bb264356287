#pragma once

// RegionUser: a user's regions, which it closes and opens at random.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>

#include "sim/theater.h"

namespace hawser::simulation {

class RegionUser {
 public:
  /// Draws from `rng`, the user's.
  RegionUser(Theater& theater, base::Rng& rng) : theater_(theater), rng_(rng) {}

  void close_one(Life& life);
  /// Nothing where the life has many.
  void open_one(Life& life);

 private:
  Theater& theater_;
  base::Rng& rng_;
  std::uint64_t opened_ = 0;
};

}  // namespace hawser::simulation
