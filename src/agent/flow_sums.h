#pragma once

// Sums of counters, and what a histogram says of latencies in counters.
//
// Thread rule: pure functions.

#include <cstddef>
#include <cstdint>

#include <hawser/counters.h>

#include "base/histogram.h"

namespace hawser::agent {

/// Adds all counts of `from`; not its latency, which a histogram has.
void add_flow(FlowCounters& to, const FlowCounters& from);
/// Of LatencySummary::below. A power of two, so a histogram's bucket ends there.
constexpr std::uint64_t latency_bound_ns(std::size_t i) { return std::uint64_t{1} << (10 + 2 * i); }
LatencySummary summary_of(const base::Histogram& histogram);

}  // namespace hawser::agent
