#include "sim/batch.h"

#include <fmt/format.h>

namespace hawser::simulation {

Batch run_batch(const BatchOptions& options) { return run_seeds(options, run_seed); }

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

std::string summary(const Batch& batch, sim::Mode mode) {
  const Run& sum = batch.sum;
  return fmt::format(
      "{} {} in mode {}, {} failed; {} agents, {} transfers ({} good), {} atomics ({} good), {} faults, {} events, "
      "hash {:016x}",
      batch.seeds, batch.seeds == 1 ? "seed" : "seeds", to_string(mode), batch.failed.size(), sum.lives, sum.transfers,
      sum.good_transfers, sum.atomics, sum.good_atomics, sum.faults, sum.steps, batch.hash);
}

}  // namespace hawser::simulation
