#include "agent/past_flow.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

TEST(PastFlow, SumsWhatSessionsHadWhenTheyEnded) {
  PastFlow past;
  base::Histogram none, two;
  two.add(1000);
  two.add(3000);
  FlowCounters flow;
  flow.bytes_written = 100;
  flow.writes = 1;
  past.add(flow, none);
  past.add(flow, two);
  past.add(flow, two);
  EXPECT_EQ(past.flow().bytes_written, 300u);
  EXPECT_EQ(past.flow().writes, 3u);
  base::Histogram all;
  all.add(500);
  past.merge_latency_into(all);
  EXPECT_EQ(all.count(), 5u);
  EXPECT_EQ(all.sum(), 500u + 2 * 4000u);
}

TEST(PastFlow, WithoutALatencyAddsNone) {
  PastFlow past;
  past.add(FlowCounters(), base::Histogram());
  base::Histogram all;
  past.merge_latency_into(all);
  EXPECT_EQ(all.count(), 0u);
}

}  // namespace
}  // namespace hawser::agent
