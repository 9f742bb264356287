#pragma once

// PastFlow: what peers that were forgotten had sent and received, so that the agent's totals never shrink.
//
// Thread rule: under the lane's lock.

#include <memory>

#include <hawser/counters.h>

#include "base/histogram.h"

namespace hawser::agent {

class PastFlow {
 public:
  /// A session ends, and these are its sums.
  void add(const FlowCounters& flow, const base::Histogram& latency);

  /// Without its latency.
  const FlowCounters& flow() const { return flow_; }
  void merge_latency_into(base::Histogram& all) const {
    if (latency_ != nullptr) all.merge(*latency_);
  }

 private:
  FlowCounters flow_;
  std::unique_ptr<base::Histogram> latency_;  ///< From the first one on: it takes 4 KiB.
};

}  // namespace hawser::agent
