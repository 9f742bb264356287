#include "agent/past_flow.h"

#include "agent/flow_sums.h"

namespace hawser::agent {

void PastFlow::add(const FlowCounters& flow, const base::Histogram& latency) {
  if (flow_ == nullptr) flow_ = std::make_unique<FlowCounters>();
  add_flow(*flow_, flow);
  if (latency.count() == 0) return;
  if (latency_ == nullptr) latency_ = std::make_unique<base::Histogram>();
  latency_->merge(latency);
}

const FlowCounters& PastFlow::flow() const {
  static const FlowCounters none;
  return flow_ != nullptr ? *flow_ : none;
}

}  // namespace hawser::agent
