#pragma once

// Copies: cards and encoded tables that are kept, and handed out later in any order, as metadata travels that nobody
// orders. What is read must not make an agent know less, or something else, than it knew.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/theater.h"

namespace hawser::simulation {

class Copies {
 public:
  explicit Copies(Theater& theater) : theater_(theater), rng_(theater.rng().fork()) {}

  /// Somebody takes a copy, or reads one that was taken before.
  void act();

 private:
  struct Copy {
    Life* owner = nullptr;
    std::string card;
    std::uint64_t revision = 0;
    std::string table;  ///< Of one region; empty: none was open.
    std::shared_ptr<const backend::RegionEntry> of_table;
  };
  /// Generations and keys by index.

  void keep(Life& owner);
  void read(Life& life, const Copy& copy);
  void read_living(Life& life, const Copy& copy);
  void read_dead(Life& life, Life& now, const Copy& copy);
  void read_table(Life& life, const Peer& peer, const Copy& copy);

  Theater& theater_;
  base::Rng rng_;
  std::vector<Copy> copies_;  ///< At most kCopiesMax.
};

}  // namespace hawser::simulation
