#pragma once

// Batches of seeds of the simulator of QUIC connections.
//
// Thread rule: as run_seed. Lifetime: values.

#include <cstdint>
#include <string>

#include "quicsim/run.h"
#include "sim/seed_batch.h"

namespace hawser::quicsim {

using BatchOptions = simulation::SeedBatchOptions<Run>;
using Batch = simulation::SeedBatch<Run>;

/// After is_ready. The mode does not count.
Batch run_batch(const BatchOptions& options);
/// What to type to see a run again, event by event.
std::string replay_command(std::uint64_t seed, sim::Mode mode);
/// One line about all seeds.
std::string summary(const Batch& batch, sim::Mode mode);

}  // namespace hawser::quicsim
