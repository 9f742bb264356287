#include "agent/counter_snapshot.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "agent/test_backend.h"

namespace hawser::agent {
namespace {

class CounterSnapshotTest : public testing::Test {
 protected:
  AgentCounters count(std::span<Session* const> sessions = {}, std::span<const OpenBackend> backends = {},
                      bool are_listed = true) {
    assume_in_lane();
    snapshot_.begin({.agent = "a"}, past_, backends);
    for (const Session* const session : sessions) snapshot_.add(*session, are_listed);
    return snapshot_.finish();
  }
  std::shared_ptr<Session> make_session(std::string name) {
    auto peer = std::make_shared<PeerCore>(std::weak_ptr<Core>(), std::move(name), base::Id128{1, 2});
    return std::make_shared<Session>(std::move(peer), proto::NotifyLimits{}, inbox_, std::span<Service* const>());
  }
  Inbox inbox_{16};
  PastFlow past_;
  CounterSnapshot snapshot_;
};

TEST_F(CounterSnapshotTest, TotalsAreThoseOfSessionsThatAreAndWere) {
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

TEST_F(CounterSnapshotTest, DevicesAndListenersAreNamedByTheirBackend) {
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

TEST_F(CounterSnapshotTest, ASessionThatIsNotListedCountsAllTheSameAndEachSnapshotBeginsAnew) {
  const auto session = make_session("p");
  session->flow.bytes_written = 11;
  session->latency.add(500);
  for (int i = 0; i < 2; ++i) {
    const AgentCounters counters = count(std::array{session.get()}, {}, false);
    EXPECT_EQ(counters.agent, "a");
    EXPECT_EQ(counters.total.bytes_written, 11u);
    EXPECT_EQ(counters.total.latency.count, 1u);
    EXPECT_TRUE(counters.peers.empty());
  }
}

}  // namespace
}  // namespace hawser::agent
