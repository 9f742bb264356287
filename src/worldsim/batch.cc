#include "worldsim/batch.h"

#include <fmt/format.h>

#include "sim/batch.h"

namespace hawser::worldsim {

Batch run_batch(const BatchOptions& options) {
  Batch batch;
  for (std::uint64_t i = 0; i < options.count; ++i) {
    RunOptions one{.seed = options.first + i, .mode = options.mode, .plant = options.plant, .trace = options.trace};
    Run run = run_seed(one);
    if (options.twice && run.ok) {
      one.trace = {};
      if (const Run again = run_seed(one); again.hash != run.hash) {
        run.ok = false;
        run.failure = fmt::format("another run of the same seed took another course ({:016x}, then {:016x})", run.hash,
                                  again.hash);
      }
    }
    ++batch.seeds;
    batch.steps += run.steps;
    batch.deeds += run.deeds;
    batch.good += run.good;
    batch.bad += run.bad;
    batch.ranks += run.ranks;
    batch.worlds += run.worlds;
    batch.faults += run.faults;
    batch.hash = (batch.hash ^ run.hash) * 0x100000001b3U;
    batch.coverage.add(run.coverage);
    if (!run.ok) batch.failed.push_back({one.seed, run.failure});
    if (options.on_run && !options.on_run(one.seed, run)) break;
  }
  return batch;
}

std::string replay_command(std::uint64_t seed, sim::Mode mode) {
  return fmt::format("hawser sim --what world --seed {} --mode {} --trace", seed, simulation::to_string(mode));
}

std::string summary(const Batch& batch, sim::Mode mode) {
  return fmt::format(
      "{} {} of worlds in mode {}, {} failed; {} ranks, {} worlds, {} operations ended well and {} badly, {} faults, "
      "{} events, hash {:016x}",
      batch.seeds, batch.seeds == 1 ? "seed" : "seeds", simulation::to_string(mode), batch.failed.size(), batch.ranks,
      batch.worlds, batch.good, batch.bad, batch.faults, batch.steps, batch.hash);
}

}  // namespace hawser::worldsim
