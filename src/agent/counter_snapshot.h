#pragma once

// CounterSnapshot: an agent's counters, taken in slices of its sessions. The status socket takes them so: it must
// not hold the lane for as long as all sessions take.
//
// Thread rule: one thread; `begin` and `add` under the lane's lock. Lifetime: one object for one snapshot.

#include <hawser/counters.h>

#include "agent/lane_access.h"
#include "base/histogram.h"

namespace hawser::agent {

class Core;
struct Session;

class CounterSnapshot {
 public:
  /// Who it is, the flow of peers that are gone, devices and listeners.
  void begin(Core& core) HAWSER_REQUIRES(in_lane);
  /// Counts the session in; with `is_listed` it and its paths have rows of their own.
  void add(Session& session, bool is_listed) HAWSER_REQUIRES(in_lane);
  /// Adds what needs no lock of the lane: the sum of all latencies, and gauges.
  AgentCounters finish(const Core& core);

 private:
  AgentCounters counters_;
  base::Histogram latency_;
};

}  // namespace hawser::agent
