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
  LatencySummary summary{.count = histogram.count(),
                         .p50_ns = histogram.quantile(0.5),
                         .p90_ns = histogram.quantile(0.9),
                         .p99_ns = histogram.quantile(0.99),
                         .max_ns = histogram.max(),
                         .sum_ns = histogram.sum()};
  std::uint64_t so_far = 0;
  std::size_t bucket = 0;
  for (std::size_t i = 0; i < summary.below.size(); ++i) {
    for (; base::Histogram::bucket_last(bucket) < latency_bound_ns(i); ++bucket)
      so_far += histogram.bucket_count(bucket);
    summary.below[i] = so_far;
  }
  return summary;
}

}  // namespace hawser::agent
