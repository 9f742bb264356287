#pragma once

// A message as an application sends it: on a channel up to kMessageMax bytes; beyond that as a write with a
// notification, which is how large messages go in Hawser.

#include "cli/bench/flow.h"
#include "cli/bench/load.h"

namespace hawser::cli::bench {

/// A stream of messages of the load's size, `window` writes in flight where it is writes; between those `turns` says
/// whether this thread sleeps. GB/s.
Result<double> measure_messages(Stage& stage, Load& load, std::size_t window, Duration budget, Turns turns);

}  // namespace hawser::cli::bench
