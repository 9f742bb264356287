#include "agent/flow_sums.h"

namespace hawser::agent {

void add_flow(FlowCounters& to, const FlowCounters& from) {
  to.bytes_written += from.bytes_written;
  to.bytes_read += from.bytes_read;
  to.writes += from.writes;
  to.reads += from.reads;
  to.errors += from.errors;
  to.retries += from.retries;
  to.cancels += from.cancels;
  to.timeouts += from.timeouts;
  to.notifications_sent += from.notifications_sent;
  to.notifications_received += from.notifications_received;
  to.messages_sent += from.messages_sent;
  to.messages_received += from.messages_received;
}

LatencySummary summary_of(const base::Histogram& histogram) {
  return {.count = histogram.count(),
          .p50_ns = histogram.quantile(0.5),
          .p90_ns = histogram.quantile(0.9),
          .p99_ns = histogram.quantile(0.99),
          .max_ns = histogram.max(),
          .sum_ns = histogram.sum()};
}

}  // namespace hawser::agent
