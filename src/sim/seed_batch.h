#pragma once

// SeedBatch: many seeds of one mode, one after another, with what their runs did together; for simulators of any kind.
// A kind's Run has `ok`, `failure`, `hash` and `add`, which makes it the sum of two runs.
//
// Thread rule: as the kind's run of one seed. Lifetime: values.

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "sim/simulation.h"

namespace hawser::simulation {

template <typename Run>
struct SeedBatchOptions {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  sim::Mode mode = sim::Mode::kStream;
  base::Planted plant = base::Planted::kNone;
  /// Runs each seed once more and compares the traces' hashes: a run that depends on anything else is a failure.
  bool twice = false;
  std::function<void(Instant, std::string_view)> trace = {};
  /// After each seed. False ends the batch.
  std::function<bool(std::uint64_t seed, const Run& run)> on_run = {};
};

struct Failed {
  std::uint64_t seed = 0;
  std::string failure;
};

template <typename Run>
struct SeedBatch {
  std::uint64_t seeds = 0;
  std::vector<Failed> failed;
  Run sum;                 ///< Of all seeds' runs.
  std::uint64_t hash = 0;  ///< Of all seeds' hashes.

  void add(std::uint64_t seed, const Run& run) {
    ++seeds;
    sum.add(run);
    hash = (hash ^ run.hash) * 0x100000001b3U;
    if (!run.ok) failed.push_back({seed, run.failure});
  }
};

/// Seed by seed by `run_one`, which is Run(const RunOptions&).
template <typename Run, typename RunOne>
SeedBatch<Run> run_seeds(const SeedBatchOptions<Run>& options, RunOne run_one) {
  SeedBatch<Run> batch;
  for (std::uint64_t seed = options.first; seed - options.first < options.count; ++seed) {
    RunOptions one{.seed = seed, .mode = options.mode, .plant = options.plant, .trace = options.trace};
    Run run = run_one(one);
    one.trace = {};
    const std::uint64_t again = options.twice && run.ok ? run_one(std::as_const(one)).hash : run.hash;
    if (again != run.hash) {
      run.ok = false;
      run.failure = fmt::format(
          "another run of the same seed took another course ({:016x}, then {:016x}): something "
          "depends on more than the seed",
          run.hash, again);
    }
    batch.add(seed, run);
    if (options.on_run && !options.on_run(seed, run)) break;
  }
  return batch;
}

}  // namespace hawser::simulation
