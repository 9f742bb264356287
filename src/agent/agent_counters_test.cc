#include "agent/agent_counters.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

TEST(AgentCounters, RegionsAreCountedUntilTheyClose) {
  backend::RegionTable regions(8);
  for (const std::uint64_t size : {100u, 20u}) {
    backend::RegionEntry entry;
    entry.size = size;
    ASSERT_TRUE(regions.add(std::move(entry)));
  }
  AgentCounters counters;
  count_regions(regions, &counters);
  EXPECT_EQ(counters.regions_gauge, 2u);
  EXPECT_EQ(counters.region_bytes_gauge, 120u);
  EXPECT_EQ(counters.regions_adopted_gauge + counters.regions_not_adopted_gauge, 0u) << "nobody asked for it";
  regions.close(0, regions.at(0)->generation);
  counters = {};
  count_regions(regions, &counters);
  EXPECT_EQ(counters.region_bytes_gauge, 20u);
}

TEST(AgentCounters, TheInboxTellsWhatItHoldsAndWhatItDropped) {
  Inbox inbox(1);
  inbox.push_event({.kind = PeerEvent::Kind::kUp, .peer = {}, .cause = {}});
  inbox.push_event({.kind = PeerEvent::Kind::kUp, .peer = {}, .cause = {}});
  inbox.reserve(70);
  AgentCounters counters;
  count_inbox(inbox, &counters);
  EXPECT_EQ(counters.events_dropped, 1u);
  EXPECT_EQ(counters.notification_bytes_gauge, 70u);
}

}  // namespace
}  // namespace hawser::agent
