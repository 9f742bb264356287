#include "agent/past_flow.h"

#include "agent/flow_sums.h"

namespace hawser::agent {

void PastFlow::add(const FlowCounters& flow, const base::Histogram& latency) {
  add_flow(flow_, flow);
  if (latency.count() == 0) return;
  if (latency_ == nullptr) latency_ = std::make_unique<base::Histogram>();
  latency_->merge(latency);
}

}  // namespace hawser::agent
