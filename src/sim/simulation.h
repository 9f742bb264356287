#pragma once

// One run of the simulator: everything about it follows from its seed.
//
// Thread rule: run_seed may be called from several threads at once with different seeds. Lifetime: values.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <hawser/time.h>

#include "base/planted.h"
#include "sim/coverage.h"

namespace hawser::simulation {

struct RunOptions {
  std::uint64_t seed = 1;
  sim::Mode mode = sim::Mode::kStream;
  base::Planted plant = base::Planted::kNone;
  std::function<void(Instant, std::string_view)> trace = {};  ///< Empty: none.
};

struct Run {
  bool ok = true;
  std::string failure;      ///< What broke, when and where.
  std::uint64_t hash = 0;   ///< Of the trace: equal for equal seeds.
  std::uint64_t steps = 0;  ///< Events of the world.
  std::uint64_t transfers = 0, good_transfers = 0;
  std::uint64_t atomics = 0, good_atomics = 0;
  std::size_t lives = 0, faults = 0;
  Coverage coverage;

  /// What was counted.
  void add(const Run& other) {
    steps += other.steps;
    transfers += other.transfers;
    good_transfers += other.good_transfers;
    atomics += other.atomics;
    good_atomics += other.good_atomics;
    lives += other.lives;
    faults += other.faults;
    coverage.add(other.coverage);
  }
};

Run run_seed(const RunOptions& options);

}  // namespace hawser::simulation
