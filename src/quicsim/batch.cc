#include "quicsim/batch.h"

#include <fmt/format.h>

namespace hawser::quicsim {

Batch run_batch(const BatchOptions& options) { return simulation::run_seeds(options, run_seed); }

std::string replay_command(std::uint64_t seed, sim::Mode) {
  return fmt::format("hawser sim --what quic --seed {} --trace", seed);
}

std::string summary(const Batch& batch, sim::Mode) {
  const Run& sum = batch.sum;
  return fmt::format(
      "{} {} of QUIC, {} failed; {} connections, {} streams, {} bytes written, {} faults, {} events, hash {:016x}",
      batch.seeds, batch.seeds == 1 ? "seed" : "seeds", batch.failed.size(), sum.connections, sum.streams, sum.bytes,
      sum.faults, sum.steps, batch.hash);
}

}  // namespace hawser::quicsim
