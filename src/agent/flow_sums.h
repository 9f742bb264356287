#pragma once

// Sums of counters, and what a histogram says of latencies in counters.
//
// Thread rule: pure functions.

#include <hawser/counters.h>

#include "base/histogram.h"

namespace hawser::agent {

/// Adds all counts of `from`; not its latency, which a histogram has.
void add_flow(FlowCounters& to, const FlowCounters& from);
LatencySummary summary_of(const base::Histogram& histogram);

}  // namespace hawser::agent
