#pragma once

// What `hawser sim --what quic` tells of a batch of seeds. Pure.

#include <string>

#include "cli/json_out.h"
#include "quicsim/batch.h"

namespace hawser::cli {

struct QuicSimReport {
  std::uint64_t first = 1;
  quicsim::Batch batch;
};

/// Good, or kFailed with the first seed that failed and how to see it again.
Status verdict(const QuicSimReport& report);
Json to_json(const QuicSimReport& report);
/// Without the failures, which are told as they come.
std::string to_text(const QuicSimReport& report);

}  // namespace hawser::cli
