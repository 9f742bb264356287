#pragma once

// What `hawser sim` tells of a batch of seeds. Pure.

#include <string>

#include "cli/json_out.h"
#include "sim/batch.h"

namespace hawser::cli {

struct SimReport {
  std::uint64_t first = 1;
  sim::Mode mode = sim::Mode::kStream;
  simulation::Batch batch;
};

/// Good, or kFailed with the first seed that failed and how to see it again.
Status verdict(const SimReport& report);
Json to_json(const SimReport& report);
/// Without the failures, which are told as they come.
std::string to_text(const SimReport& report);

}  // namespace hawser::cli
