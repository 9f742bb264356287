#pragma once

// A cache line bounced between the two processes: the shortest round trip there is, and the probe for their placement.

#include <cstdint>
#include <functional>

#include <hawser/status.h>
#include <hawser/time.h>

#include "cli/bench/board.h"

namespace hawser::cli::bench {

/// The child's side, until `over`.
void echo_lines(BoardPage& page, const std::function<bool()>& over);
/// The parent's side: `count` bounces. kTimedOut when the other side does not answer.
Status bounce_lines(BoardPage& page, std::uint32_t count, Duration patience = std::chrono::seconds(5));

}  // namespace hawser::cli::bench
