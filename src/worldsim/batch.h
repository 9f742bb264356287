#pragma once

// Batches of seeds of the worlds' simulator.
//
// Thread rule: as run_seed. Lifetime: values.

#include <cstdint>
#include <string>

#include "sim/seed_batch.h"
#include "worldsim/run.h"

namespace hawser::worldsim {

using BatchOptions = simulation::SeedBatchOptions<Run>;
using Batch = simulation::SeedBatch<Run>;

Batch run_batch(const BatchOptions& options);
/// What to type to see a run again, event by event.
std::string replay_command(std::uint64_t seed, sim::Mode mode);
/// One line about all seeds.
std::string summary(const Batch& batch, sim::Mode mode);

}  // namespace hawser::worldsim
