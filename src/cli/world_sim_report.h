#pragma once

// What `hawser sim --what world` tells of a batch of seeds. Pure.

#include <string>

#include "cli/json_out.h"
#include "worldsim/batch.h"

namespace hawser::cli {

struct WorldSimReport {
  std::uint64_t first = 1;
  sim::Mode mode = sim::Mode::kStream;
  worldsim::Batch batch;
};

/// Good, or kFailed with the first seed that failed and how to see it again.
Status verdict(const WorldSimReport& report);
Json to_json(const WorldSimReport& report);
/// Without the failures, which are told as they come.
std::string to_text(const WorldSimReport& report);

}  // namespace hawser::cli
