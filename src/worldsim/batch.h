#pragma once

// Batch: many seeds of one mode, one after another, with what they covered together.
//
// Thread rule: as run_seed. Lifetime: values.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "worldsim/run.h"

namespace hawser::worldsim {

struct BatchOptions {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  sim::Mode mode = sim::Mode::kStream;
  base::Planted plant = base::Planted::kNone;
  /// Runs each seed once more and compares the traces' hashes.
  bool twice = false;
  std::function<void(Instant, std::string_view)> trace = {};
  /// After each seed. False ends the batch.
  std::function<bool(std::uint64_t seed, const Run& run)> on_run = {};
};

struct Failed {
  std::uint64_t seed = 0;
  std::string failure;
};

struct Batch {
  std::uint64_t seeds = 0;
  std::vector<Failed> failed;
  std::uint64_t steps = 0, deeds = 0, good = 0, bad = 0, ranks = 0, worlds = 0, faults = 0;
  std::uint64_t hash = 0;  ///< Of all seeds' hashes.
  Coverage coverage;
};

Batch run_batch(const BatchOptions& options);
/// What to type to see a run again, event by event.
std::string replay_command(std::uint64_t seed, sim::Mode mode);
/// One line about all seeds.
std::string summary(const Batch& batch, sim::Mode mode);

}  // namespace hawser::worldsim
