#include "sim/batch.h"

#include <fmt/format.h>

namespace hawser::simulation {

Batch run_batch(const BatchOptions& options) {
  Batch batch;
  for (std::uint64_t i = 0; i < options.count; ++i) {
    RunOptions one{.seed = options.first + i, .mode = options.mode, .plant = options.plant, .trace = options.trace};
    Run run = run_seed(one);
    if (options.twice && run.ok) {
      one.trace = {};
      if (const Run again = run_seed(one); again.hash != run.hash) {
        run.ok = false;
        run.failure = fmt::format(
            "another run of the same seed took another course ({:016x}, then {:016x}): something "
            "depends on more than the seed",
            run.hash, again.hash);
      }
    }
    ++batch.seeds;
    batch.steps += run.steps;
    batch.transfers += run.transfers;
    batch.good_transfers += run.good_transfers;
    batch.atomics += run.atomics;
    batch.good_atomics += run.good_atomics;
    batch.lives += run.lives;
    batch.faults += run.faults;
    batch.hash = (batch.hash ^ run.hash) * 0x100000001b3U;
    batch.coverage.add(run.coverage);
    if (!run.ok) batch.failed.push_back({one.seed, run.failure});
    if (options.on_run && !options.on_run(one.seed, run)) break;
  }
  return batch;
}

std::string_view to_string(sim::Mode mode) { return mode == sim::Mode::kStream ? "stream" : "mapped"; }

Result<sim::Mode> mode_of(std::string_view name) {
  for (const sim::Mode mode : {sim::Mode::kStream, sim::Mode::kMapped}) {
    if (name == to_string(mode)) return mode;
  }
  return Status(Code::kInvalid, fmt::format("there is no mode '{}': stream or mapped", name));
}

std::string replay_command(std::uint64_t seed, sim::Mode mode) {
  return fmt::format("hawser sim --seed {} --mode {} --trace", seed, to_string(mode));
}

}  // namespace hawser::simulation
