// Scenarios as text: the request, a line per candidate, and the table that explain() must give.

#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "base/quantity.h"

namespace hawser::plan {
namespace {

struct Scenario {
  Request request;
  std::vector<backend::Traits> traits;
  std::vector<Candidate> candidates;
};

using Words = std::vector<std::string>;

Words split_words(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool has(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

double number(const Words& words, std::string key, double fallback) {
  key += '=';
  for (const std::string& word : words) {
    if (word.starts_with(key)) return std::stod(word.substr(key.size()));
  }
  return fallback;
}

/// "write 64KiB pieces=16 same_host strict local=cuda"
Request read_request(const Words& words) {
  Request request;
  request.op = words[0] == "read" ? Operation::kRead : Operation::kWrite;
  request.bytes = base::parse_size(words[1]).value();
  request.pieces = static_cast<std::uint64_t>(number(words, "pieces", 1));
  request.same_host = has(words, "same_host");
  request.self = has(words, "self");
  request.strict_order = has(words, "strict");
  if (has(words, "local=cuda")) request.local = {DeviceKind::kCuda, 1};
  request.peer = "decode-3";
  return request;
}

/// "shm up latency=300 rate=12 piece=20 same_host_only measured_latency=9 refused=NAME"
void read_candidate(const Words& words, backend::Traits& traits, Candidate& candidate) {
  const std::map<std::string, Readiness> kStates{{"up", Readiness::kUp},
                                                 {"connecting", Readiness::kConnecting},
                                                 {"unopened", Readiness::kUnopened},
                                                 {"down", Readiness::kDown}};
  candidate.backend = words[0];
  candidate.readiness = kStates.at(words[1]);
  traits.latency_ns = number(words, "latency", 0);
  traits.bytes_per_ns = number(words, "rate", 1);
  traits.piece_ns = number(words, "piece", 0);
  traits.same_host_only = has(words, "same_host_only");
  traits.self_only = has(words, "self_only");
  candidate.health.latency_ns = number(words, "measured_latency", 0);
  candidate.health.bytes_per_ns = number(words, "measured_rate", 0);
  candidate.health.samples = candidate.health.latency_ns > 0 || candidate.health.bytes_per_ns > 0 ? 1 : 0;
  candidate.traits = has(words, "closed") ? nullptr : &traits;
  if (has(words, "refused")) candidate.refusal = Status(Code::kNotFound, "the peer's card names no such backend");
  if (has(words, "lost")) candidate.refusal = Status(Code::kDisconnected, "connection reset by peer");
}

Route run(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  const Request request = read_request(split_words(line));
  std::vector<Words> lines;
  while (std::getline(in, line)) {
    if (!split_words(line).empty()) lines.push_back(split_words(line));
  }
  std::vector<backend::Traits> traits(lines.size());
  std::vector<Candidate> candidates(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) read_candidate(lines[i], traits[i], candidates[i]);
  return plan_route(request, candidates);
}

void expect(const std::string& scenario, const std::string& table) { EXPECT_EQ("\n" + explain(run(scenario)), table); }

TEST(Planner, OnOneHostTheFastestIsTaken) {
  expect(R"(write 1MiB pieces=16 same_host
            shm up latency=300 rate=12 piece=20 same_host_only
            tcp unopened latency=20000 rate=2.5 piece=10
            loopback unopened latency=100 rate=12 self_only)",
         R"(
write to decode-3: 1 MiB in 16 pieces
  backend   path         expected         rate  why
* shm       up            88.0 us   11.92 GB/s  estimated
  tcp       unopened       940 us    1.12 GB/s  estimated, opening included
  loopback  unopened            -            -  reaches its own agent only
)");
}

TEST(Planner, OnAnotherHostSharedMemoryIsRefused) {
  expect(R"(read 4KiB
            shm unopened latency=300 rate=12 same_host_only
            tcp unopened latency=20000 rate=2.5
            verbs down lost)",
         R"(
read from decode-3: 4 KiB in 1 piece
  backend  path         expected         rate  why
  shm      unopened            -            -  reaches processes of this host only, and the peer is on another
* tcp      unopened       522 us    0.01 GB/s  estimated, opening included
  verbs    down                -            -  connection reset by peer
)");
}

TEST(Planner, MeasurementsReplaceEstimates) {
  expect(R"(write 64KiB same_host
            shm up latency=300 rate=12 measured_rate=0.1
            tcp up latency=20000 rate=2.5 measured_latency=15000)",
         R"(
write to decode-3: 64 KiB in 1 piece
  backend  path         expected         rate  why
  shm      up             656 us    0.10 GB/s  measured
* tcp      up            41.2 us    1.59 GB/s  measured
)");
}

TEST(Planner, TiesFallToTheGivenOrder) {
  expect(R"(write 1MiB
            verbs up latency=1040 rate=10
            ucx up latency=1000 rate=10
            slow up latency=1000 rate=9.2)",
         R"(
write to decode-3: 1 MiB in 1 piece
  backend  path         expected         rate  why
* verbs    up             106 us    9.90 GB/s  estimated
  ucx      up             106 us    9.91 GB/s  estimated
  slow     up             115 us    9.12 GB/s  estimated
)");
}

TEST(Planner, AStrictOrderBeatsTime) {
  expect(R"(write 1MiB strict same_host
            rdma unopened closed
            tcp up latency=20000 rate=2.5
            shm up latency=300 rate=12)",
         R"(
write to decode-3: 1 MiB in 1 piece
  backend  path         expected         rate  why
  rdma     unopened            -            -  the backend is not open
* tcp      up             439 us    2.39 GB/s  estimated, first in the given order
  shm      up            87.7 us   11.96 GB/s  estimated
)");
}

TEST(Planner, NoPathSaysWhyEachWasRefused) {
  const std::string scenario = R"(write 100 local=cuda
            shm unopened same_host_only
            tcp up
            ucx unopened refused)";
  expect(scenario, R"(
write to decode-3: 100 B in 1 piece
  backend  path         expected         rate  why
  shm      unopened            -            -  reaches processes of this host only, and the peer is on another
  tcp      up                  -            -  does not reach local memory (cuda:1)
  ucx      unopened            -            -  the peer's card names no such backend
  no path can be used
)");
  const Status status = run(scenario).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(),
            "no backend can move cuda:1 to host memory of peer \"decode-3\"; shm: reaches processes of this host only, "
            "and the peer is on another; tcp: does not reach local memory (cuda:1); ucx: the peer's card names no such "
            "backend");
}

TEST(Planner, LostPathsMeanDisconnectedNotUnsupported) {
  EXPECT_EQ(run("write 1\n shm unopened same_host_only\n tcp down lost").status().code(), Code::kDisconnected);
  EXPECT_EQ(run("write 1\n tcp down").status().code(), Code::kDisconnected);
  EXPECT_EQ(run("write 1\n").status().code(), Code::kUnsupported);
}

TEST(Planner, OthersStandInByExpectedTime) {
  const Route route = run("write 1MiB\n a up rate=1\n b down\n c up rate=4\n d up rate=2");
  EXPECT_EQ(route.order, (std::vector<std::size_t>{2, 3, 0}));
  EXPECT_EQ(route.chosen(), 2u);
  EXPECT_TRUE(route.status().ok());
}

TEST(Cost, HealthLearnsLatencyFromSmallAndBandwidthFromLarge) {
  backend::Traits traits;
  traits.latency_ns = 10'000;
  traits.bytes_per_ns = 1;
  Health health;
  for (int i = 0; i < 50; ++i) health.observe(traits, 64, 1, Duration(5'064));
  EXPECT_NEAR(health.latency_ns, 5'000, 1);
  EXPECT_EQ(health.bytes_per_ns, 0);
  for (int i = 0; i < 80; ++i) health.observe(traits, 10'000'000, 1, Duration(2'505'000));
  EXPECT_NEAR(health.bytes_per_ns, 4, 0.05);
  EXPECT_NEAR(health.latency_ns, 5'000, 1);
  EXPECT_EQ(health.samples, 130u);
}

TEST(Cost, SenselessNumbersDoNoHarm) {
  backend::Traits traits;
  traits.bytes_per_ns = 0;
  traits.latency_ns = -5;
  Health health;
  health.observe(traits, 0, 0, Duration(0));
  EXPECT_EQ(health.samples, 0u);
  health.observe(traits, 1000, 1, Duration(1));
  const double ns = Cost::of(traits, health).predict_ns(UINT64_MAX, 0);
  EXPECT_GT(ns, 0);
  EXPECT_TRUE(std::isfinite(ns));
}

}  // namespace
}  // namespace hawser::plan
