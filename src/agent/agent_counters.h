#pragma once

// An agent's counters, taken session by session: all at once for its user, in slices for the status socket, which must
// not hold the lane for long.
//
// Thread rule: under the lane's lock, but for `finish`. Lifetime: one object for one snapshot.

#include <hawser/counters.h>

#include "base/histogram.h"

namespace hawser::agent {

class Core;
struct Session;

class CounterSnapshot {
 public:
  /// Who it is, the flow of peers that are gone, devices and listeners.
  void begin(Core& core);
  /// Counts the session in; with `is_listed` it and its paths have rows of their own.
  void add(const Session& session, bool is_listed);
  /// What needs no lock of the lane: the sum of all latencies, and gauges.
  AgentCounters finish(const Core& core);

 private:
  AgentCounters counters_;
  base::Histogram latency_;
};

}  // namespace hawser::agent
