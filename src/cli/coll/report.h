#pragma once

// What `hawser bench coll` tells, as JSON (schema hawser.bench_coll/1) and as text that is made of the JSON: rank 0
// measures, and the process that started it shows.
//
// Thread rule: pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/coll/meter.h"
#include "cli/coll/tune.h"
#include "cli/json_out.h"
#include "schedule/cost_model.h"

namespace hawser::cli::coll {

inline constexpr std::string_view kBenchColl = "bench coll";

/// Where it was measured.
struct Place {
  std::vector<std::uint32_t> hosts;  ///< By rank.
  std::string backends;
  std::string cost_model;  ///< World::cost_model.
  schedule::CostModel model;
  bool pinned = false;  ///< Rank 0 keeps to a core of its own.
};

Json bench_json(const Place& place, const std::vector<Measured>& all);
/// With the file's text. Both models are set beside each measured time.
Json tune_json(const Place& place, const Tuned& tuned);

/// Of one of them, or of one of them with "others_cpu". At most 100 columns but for names of files.
std::string to_text(const Json& report);

}  // namespace hawser::cli::coll
