#pragma once

// Ping-pong by writes alone: each side watches a word of its own memory that the other side writes.

#include <cstdint>
#include <vector>

#include "cli/bench/stage.h"

namespace hawser::cli::bench {

/// Lives no longer than its stage.
struct Pong {
  Region memory;  ///< Word 0: what is written to the child; word 1: what the child writes.
  Plan plan;      ///< Word 0 into the child's memory.
};
Result<Pong> make_pong(Stage& stage);
/// Round trips for about `budget`; the median, ns.
Result<double> pong_round_trips(Stage& stage, const Pong& pong, Duration budget, std::vector<std::uint64_t>& singles);

}  // namespace hawser::cli::bench
