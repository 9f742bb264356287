#include "agent/metrics_source.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/flow_sums.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "metrics/http_library.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string page_of(const AgentCounters& counters) {
  metrics::Exposition to;
  add_metrics(counters, to);
  return to.text();
}

TEST(LatencySummary, CountsWhatIsBelowEachBound) {
  base::Histogram histogram;
  for (const std::uint64_t ns : {std::uint64_t{0}, std::uint64_t{1023}, std::uint64_t{1024}, std::uint64_t{4095},
                                 std::uint64_t{4096}, std::uint64_t{1} << 34, (std::uint64_t{1} << 34) - 1}) {
    histogram.add(ns);
  }
  const LatencySummary summary = summary_of(histogram);
  EXPECT_EQ(summary.below[0], 2u) << "1023 is below 1.024 us, 1024 is not";
  EXPECT_EQ(summary.below[1], 4u);
  EXPECT_EQ(summary.below[2], 5u);
  EXPECT_EQ(summary.below.back(), 6u);
  EXPECT_EQ(summary.count, 7u);
}

TEST(AgentMetrics, TellOfTransfersPeersAndPaths) {
  std::vector<std::byte> memory(4096);
  Agent agent = std::move(open_with({.name = "a \"quoted\" name"}, {backend::loopback_factory()}).value());
  const Region region = agent.add_region({.name = "m", .bytes = memory}).value();
  const LocalRange from = region.range(0, 100);
  const RemoteRange to = agent.self().range("m", 1000, 100);
  const Plan plan = agent.plan_write(agent.self(), {&from, 1}, {&to, 1}).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(plan.submit({.notify = "x"}).value().wait(10s).ok());
  const std::string page = page_of(agent.counters());
  const std::string name = "agent=\"a \\\"quoted\\\" name\"";
  EXPECT_TRUE(has(page, "hawser_agent_bytes_total{" + name + ",operation=\"write\"} 300\n")) << page;
  EXPECT_TRUE(has(page, "hawser_agent_transfers_total{" + name + ",operation=\"write\"} 3\n")) << page;
  EXPECT_TRUE(has(page, "hawser_agent_transfer_seconds_bucket{" + name + ",le=\"+Inf\"} ")) << page;
  EXPECT_TRUE(has(page, "hawser_peer_sessions_up{" + name + ",peer=\"a \\\"quoted\\\" name\"} 1\n")) << page;
  EXPECT_TRUE(has(page, "backend=\"loopback\"} 1\n")) << page;
  EXPECT_TRUE(has(page, "hawser_agent_regions{" + name + "} 1\n")) << page;
  EXPECT_TRUE(has(page, "hawser_agent_region_bytes{" + name + "} 4096\n")) << page;
}

TEST(AgentMetrics, OfManyPeersThoseThatMovedMostHaveSamples) {
  AgentCounters counters{.agent = "a", .incarnation = "1"};
  for (std::size_t i = 0; i < kMetricPeersMax + 1; ++i) {
    counters.peers.push_back({.peer = "peer" + std::to_string(i), .state = "up"});
    counters.peers.back().flow.bytes_read = i;
    counters.paths.push_back({.peer = counters.peers.back().peer, .backend = "tcp", .state = "up"});
  }
  const std::string page = page_of(counters);
  EXPECT_TRUE(has(page, "hawser_peers_omitted{agent=\"a\"} 1\n"));
  EXPECT_FALSE(has(page, "peer=\"peer0\"")) << "neither its flow nor its paths";
  EXPECT_TRUE(has(page, "hawser_peer_bytes_total{agent=\"a\",peer=\"peer1000\",operation=\"read\"} 1000\n"));
  counters.peers.pop_back();
  EXPECT_TRUE(has(page_of(counters), "hawser_peers_omitted{agent=\"a\"} 0\n"));
}

TEST(AgentMetrics, RefusalsAreToldByReasonAlsoThoseThatNeverHappened) {
  AgentCounters counters{.agent = "a", .incarnation = "1"};
  counters.admissions.push_back(
      {.backend = "tcp", .let_in = 4, .turned_away = 7, .gave_way = 2, .by_code = {{"timed out", 7}}});
  const std::string page = page_of(counters);
  EXPECT_TRUE(has(page, "hawser_admissions_total{agent=\"a\",backend=\"tcp\"} 4\n")) << page;
  EXPECT_TRUE(has(page, "hawser_admissions_gave_way_total{agent=\"a\",backend=\"tcp\"} 2\n")) << page;
  EXPECT_TRUE(has(page, "hawser_refusals_total{agent=\"a\",backend=\"tcp\",code=\"timed_out\"} 7\n")) << page;
  EXPECT_TRUE(has(page, "hawser_refusals_total{agent=\"a\",backend=\"tcp\",code=\"denied\"} 0\n")) << page;
}

TEST(AgentMetrics, EachQuotaHasACounter) {
  const AgentCounters counters{.agent = "a", .incarnation = "1", .quota_refusals = {{"peer_bytes", 3}}};
  const std::string page = page_of(counters);
  EXPECT_TRUE(has(page, "hawser_quota_refusals_total{agent=\"a\",quota=\"peer_bytes\"} 3\n")) << page;
  EXPECT_TRUE(has(page, "hawser_quota_refusals_total{agent=\"a\",quota=\"name\"} 0\n")) << page;
}

TEST(AgentMetrics, TwoSessionsWithOneNameAreOneSeries) {
  AgentCounters counters{.agent = "a", .incarnation = "1"};
  counters.peers = {{.peer = "b", .state = "down"}, {.peer = "b", .state = "up"}};
  counters.peers[0].flow.writes = 2;
  counters.peers[1].flow.writes = 3;
  const std::string page = page_of(counters);
  EXPECT_TRUE(has(page, "hawser_peer_transfers_total{agent=\"a\",peer=\"b\",operation=\"write\"} 5\n")) << page;
  EXPECT_TRUE(has(page, "hawser_peer_sessions_up{agent=\"a\",peer=\"b\"} 1\n")) << page;
}

TEST(AgentMetrics, AnAgentOpensWithoutThemAndSaysWhy) {
  std::string lines;
  AgentOptions options{.name = "a", .metrics = "192.0.2.1:9400"};
  options.log.sink = [&lines](LogLevel, std::string_view line) { lines += line; };
  const Agent agent = std::move(open_with(std::move(options), {backend::loopback_factory()}).value());
  EXPECT_TRUE(has(lines, "no metrics are served")) << lines;
}

TEST(AgentMetrics, AnAgentClosesWhileTheyAreServed) {
  if (!metrics::http_library()) GTEST_SKIP() << metrics::http_library().error().to_string();
  std::string lines;
  AgentOptions options{.name = "a", .metrics = "127.0.0.1:0"};
  options.log = {.level = LogLevel::kInfo, .sink = [&lines](LogLevel, std::string_view line) { lines += line; }};
  Agent agent = std::move(open_with(std::move(options), {backend::loopback_factory()}).value());
  EXPECT_TRUE(has(lines, "metrics at http://127.0.0.1:")) << lines;
  EXPECT_TRUE(agent.close(10s).ok());
}

}  // namespace
}  // namespace hawser::agent
