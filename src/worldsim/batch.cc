#include "worldsim/batch.h"

#include <fmt/format.h>

#include "sim/batch.h"

namespace hawser::worldsim {

Batch run_batch(const BatchOptions& options) { return simulation::run_seeds(options, run_seed); }

std::string replay_command(std::uint64_t seed, sim::Mode mode) {
  return fmt::format("hawser sim --what world --seed {} --mode {} --trace", seed, simulation::to_string(mode));
}

std::string summary(const Batch& batch, sim::Mode mode) {
  const Run& sum = batch.sum;
  return fmt::format(
      "{} {} of worlds in mode {}, {} failed; {} of sparse worlds, {} ranks, {} worlds, {} operations ended well and "
      "{} badly, {} faults, "
      "{} events, hash {:016x}",
      batch.seeds, batch.seeds == 1 ? "seed" : "seeds", simulation::to_string(mode), batch.failed.size(), sum.sparse,
      sum.ranks, sum.worlds, sum.good, sum.bad, sum.faults, sum.steps, batch.hash);
}

}  // namespace hawser::worldsim
