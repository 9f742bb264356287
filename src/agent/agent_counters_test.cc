#include "agent/agent_counters.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "agent/test_backend.h"

namespace hawser::agent {
namespace {

class AgentCountersTest : public testing::Test {
 protected:
  AgentCounters count(std::span<Session* const> sessions = {}, std::span<const OpenBackend> backends = {}) {
    AgentCounters counters;
    assume_in_lane();
    count_traffic(past_, sessions, backends, &counters);
    return counters;
  }
  std::shared_ptr<Session> make_session(std::string name) {
    auto peer = std::make_shared<PeerCore>(std::weak_ptr<Core>(), std::move(name), base::Id128{1, 2});
    return std::make_shared<Session>(std::move(peer), proto::NotifyLimits{}, inbox_, std::span<Service* const>());
  }
  Inbox inbox_{16};
  PastFlow past_;
};

TEST_F(AgentCountersTest, TotalsAreThoseOfSessionsThatAreAndWere) {
  FlowCounters gone;
  gone.bytes_written = 100;
  base::Histogram latency;
  latency.add(1000);
  past_.add(gone, latency);
  const auto session = make_session("p");
  session->flow.bytes_written = 11;
  session->latency.add(500);
  const AgentCounters counters = count(std::array{session.get()});
  EXPECT_EQ(counters.total.bytes_written, 111u);
  EXPECT_EQ(counters.total.latency.count, 2u);
  EXPECT_EQ(counters.total.latency.sum_ns, 1500u);
  ASSERT_EQ(counters.peers.size(), 1u);
  EXPECT_EQ(counters.peers[0].peer, "p");
  EXPECT_EQ(counters.peers[0].state, "known");
  EXPECT_EQ(counters.peers[0].flow.bytes_written, 11u);
  EXPECT_EQ(counters.peers[0].flow.latency.count, 1u);
  EXPECT_TRUE(counters.paths.empty());
}

TEST_F(AgentCountersTest, DevicesAndListenersAreNamedByTheirBackend) {
  std::array<OpenBackend, 2> backends{open_test_backend("verbs", 1, std::make_shared<TestBackend>()),
                                      open_test_backend("tcp", 2, std::make_shared<TestBackend>())};
  port_of(backends[0]).its_devices.resize(2);
  port_of(backends[0]).its_devices[1].device = "mlx5_1";
  port_of(backends[1]).its_admissions.emplace();
  const AgentCounters counters = count({}, backends);
  ASSERT_EQ(counters.devices.size(), 2u);
  EXPECT_EQ(counters.devices[1].backend, "verbs");
  EXPECT_EQ(counters.devices[1].device, "mlx5_1");
  ASSERT_EQ(counters.admissions.size(), 1u) << "a port without a listener has none";
  EXPECT_EQ(counters.admissions[0].backend, "tcp");
}

TEST_F(AgentCountersTest, RegionsAreCountedUntilTheyClose) {
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

TEST_F(AgentCountersTest, TheInboxTellsWhatItHoldsAndWhatItDropped) {
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
