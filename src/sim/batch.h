#pragma once

// Batches of seeds of the agents' simulator; and the names of modes, for people.
//
// Thread rule: as run_seed. Lifetime: values.

#include <cstdint>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "sim/seed_batch.h"
#include "sim/simulation.h"

namespace hawser::simulation {

using BatchOptions = SeedBatchOptions<Run>;
using Batch = SeedBatch<Run>;

Batch run_batch(const BatchOptions& options);
/// What to type to see a run again, event by event.
std::string replay_command(std::uint64_t seed, sim::Mode mode);
/// One line about all seeds.
std::string summary(const Batch& batch, sim::Mode mode);

std::string_view to_string(sim::Mode mode);
Result<sim::Mode> mode_of(std::string_view name);

}  // namespace hawser::simulation
