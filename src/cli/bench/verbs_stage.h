#pragma once

// The stage of rows over verbs: both processes over that backend alone, and the devices between which they move.

#include <string>

#include "backend/verbs/queues/raw_loop.h"
#include "cli/bench/flow.h"
#include "cli/bench/stage.h"

namespace hawser::cli::bench {

inline constexpr double kVerbsWeight = 3;  ///< Slices are so much longer: software devices are slow.

struct VerbsStage {
  StageSpec spec;
  backend::verbs::RawLoopDevices devices;
};

/// Each process with a device of its own where two are in one subnet. Where the user chose devices they are used by
/// both. kUnsupported tells why there is none.
Result<VerbsStage> verbs_stage(const std::string& config, Turns turns);
/// Those of the path that is up, which a neighbour takes as well.
backend::verbs::RawLoopDevices devices_of(Stage& stage, const backend::verbs::RawLoopDevices& otherwise);

}  // namespace hawser::cli::bench
