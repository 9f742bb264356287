#pragma once

// CounterSnapshot: an agent's counters of traffic, taken session by session. The status socket takes them in slices: it
// must not hold the lane for as long as all sessions take.
//
// Thread rule: one thread; `begin` and `add` under the lane's lock. Lifetime: one object for one snapshot at a time.

#include <span>

#include <hawser/counters.h>

#include "agent/engine/open_backend.h"
#include "agent/lane_access.h"
#include "agent/past_flow.h"
#include "base/histogram.h"

namespace hawser::agent {

struct Session;

class CounterSnapshot {
 public:
  /// `known`: what needs no counting. Adds the flow of peers that are gone, devices and listeners.
  void begin(AgentCounters known, const PastFlow& past, std::span<const OpenBackend> backends) HAWSER_REQUIRES(in_lane);
  /// Counts the session in; with `is_listed` it and its paths have rows of their own.
  void add(const Session& session, bool is_listed) HAWSER_REQUIRES(in_lane);
  /// Adds the sum of all latencies. The snapshot is over.
  AgentCounters finish();

 private:
  AgentCounters counters_;
  base::Histogram latency_;
};

}  // namespace hawser::agent
