#pragma once

// One run of a simulated world: everything about it follows from its seed.
//
// Thread rule: run_seed may be called from several threads at once with different seeds. Lifetime: values.

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/simulation.h"
#include "worldsim/coverage.h"

namespace hawser::worldsim {

using RunOptions = simulation::RunOptions;

struct Run {
  bool ok = true;
  std::string failure;      ///< What broke, when and where.
  std::uint64_t hash = 0;   ///< Of the trace: equal for equal seeds.
  std::uint64_t steps = 0;  ///< Events of the universe.
  std::uint64_t deeds = 0, good = 0, bad = 0;
  std::size_t ranks = 0, worlds = 0, faults = 0;
  std::size_t sparse = 0;  ///< 1: the world had a topology.
  Coverage coverage;

  /// What was counted.
  void add(const Run& other) {
    steps += other.steps;
    deeds += other.deeds;
    good += other.good;
    bad += other.bad;
    ranks += other.ranks;
    worlds += other.worlds;
    sparse += other.sparse;
    faults += other.faults;
    coverage.add(other.coverage);
  }
};

Run run_seed(const RunOptions& options);

}  // namespace hawser::worldsim
