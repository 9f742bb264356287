// Many peers of one agent in one process: time, memory and descriptors stay within bounds.

#include <malloc.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "real_test.h"
#include "wire/card.h"

namespace hawser::real {
namespace {

#if defined(HAWSER_SANITIZE_THREAD) || defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED)
constexpr std::size_t kPeers = 150;
#else
constexpr std::size_t kPeers = 1000;
#endif
/// How many to meet: more of them by hand, HAWSER_CROWD=1600.
std::size_t crowd() {
  const char* const wanted = std::getenv("HAWSER_CROWD");
  if (wanted == nullptr) return kPeers;
  const std::size_t count = std::strtoul(wanted, nullptr, 10);
  if (count == 0) throw std::invalid_argument(std::string("HAWSER_CROWD is a number of peers, not '") + wanted + "'");
  return count;
}
/// Of both ends, and of the process itself.
std::size_t descriptors_for(const Way& way, std::size_t count) {
  return 200 + count * (way.backend == "tcp" ? 12 : 20);
}
constexpr Duration kPatientHeartbeat = 20s;  ///< In a crowd on two cores turns come late.

std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  }
  return 0;
}

bool raise_descriptors(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur >= wanted;
}

struct Guest {
  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  Agent agent;
  Region region;
};

TEST_P(RealTest, AThousandPeers) {
  const std::size_t count = crowd();
  const std::size_t descriptors = descriptors_for(GetParam(), count);
  if (!raise_descriptors(descriptors)) {
    GTEST_SKIP() << "needs " << descriptors << " descriptors; raise `ulimit -n`";
  }
  AgentOptions patient = quick("here");
  patient.heartbeat = kPatientHeartbeat;
  patient.peer_timeout = 60s;  // It opens all of them at once, and each waits for those before it.
  Here here(GetParam(), patient);
  Memory& source = here.add("source", 4096);
  std::ranges::fill(source.bytes, std::byte{3});
  const std::size_t before = resident_kib();
  const Instant begun = now();
  // Few drivers run all guests: each of them is as small as an agent may be.
  Driver drivers = must(Driver::start({.threads = 1}));
  std::vector<std::unique_ptr<Guest>> guests;
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < count; ++i) {
    auto guest = std::make_unique<Guest>();
    AgentOptions options = quick("guest " + std::to_string(i));
    options.backends = {{GetParam().backend, {}}};
    options.driven = true;
    options.heartbeat = kPatientHeartbeat;
    options.peer_timeout = 60s;
    guest->agent = must(Agent::open(options));
    guest->region = must(guest->agent.add_region({.name = "guest", .bytes = guest->memory, .device = {}}));
    must(drivers.attach(guest->agent));
    guests.push_back(std::move(guest));
  }
  const Instant opened = now();
  for (auto& guest : guests) {
    const Peer peer = must(here.agent().add_peer(must(guest->agent.card())));
    const Plan plan = here.plan_write(peer, "source", "guest", 4096);
    all.push_back(must(plan.submit({.notify = "hello", .deadline = 60s})));
  }
  for (Transfer& each : all) must(finish(each, 60s));
  for (auto& guest : guests) {
    ASSERT_TRUE(eventually([&] { return guest->agent.take_notification().has_value(); }));
    ASSERT_TRUE(all_are(guest->memory, std::byte{3}));
  }
  const Instant met = now();
  const std::size_t grown = resident_kib() - before;
  std::printf("             %zu peers: opened in %.0f ms, met and written to in %.0f ms, %.0f KiB each for both ends\n",
              count, static_cast<double>((opened - begun).count()) / 1e6,
              static_cast<double>((met - opened).count()) / 1e6, static_cast<double>(grown) / count);
  EXPECT_LE(met - begun, 60s);
#if !defined(HAWSER_SANITIZE_THREAD) && !defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED)
  EXPECT_LE(grown / count, 1024U);
#endif
  EXPECT_EQ(here.agent().peers().size(), count);
  for (auto& guest : guests) (void)drivers.detach(guest->agent);
  const Instant closing = now();
  guests.clear();
  print_time("closed in", now() - closing);
  EXPECT_TRUE(eventually([&] { return here.agent().peers().empty(); }, 60s));
}

/// Bytes of this process's heap that are in use, large blocks among them.
std::size_t heap_bytes() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// Design 5.2.11: thousands of agents share a process, most of them idle, and know more peers than they use.
TEST_P(RealTest, IdleAgentsAndUnusedPeersAreSmall) {
#if defined(HAWSER_SANITIZE_THREAD) || defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED)
  GTEST_SKIP() << "a sanitizer's heap has other sizes";
#endif
  if (GetParam().backend == "verbs") GTEST_SKIP() << "an adapter's queues and registrations are no small things";
  constexpr std::size_t kAgents = 64, kKnown = 1000;
  const auto open = [](const std::string& name) {
    AgentOptions options = quick(name);
    options.backends = {GetParam().spec_here()};
    return must(Agent::open(options));
  };
  Agent first = open("first");  // What is made once for a process.
  std::vector<Agent> agents;
  agents.reserve(kAgents);
  const std::size_t before = heap_bytes();
  for (std::size_t i = 0; i < kAgents; ++i) agents.push_back(open("idle " + std::to_string(i)));
  const std::size_t each = (heap_bytes() - before) / kAgents;
  std::vector<std::byte> bytes(4096);
  const Region region = must(first.add_region({.name = "r", .bytes = bytes}));
  const std::string card = must(first.card());
  std::vector<std::string> cards;
  for (std::size_t i = 0; i < kKnown; ++i) {
    wire::Card other = must(wire::decode_card(std::as_bytes(std::span<const char>(card))));
    other.incarnation = {i + 1, 1};
    other.name = "known " + std::to_string(i);
    cards.push_back(must(wire::encode(other)));
  }
  const auto know = [&](Agent& agent) {
    const std::size_t unmet = heap_bytes();
    for (const std::string& each_card : cards) (void)must(agent.add_peer(each_card));
    return (heap_bytes() - unmet) / kKnown;
  };
  const std::size_t with_card = know(agents[0]);
  const std::size_t known = know(agents[1]);  // It shares the cards that the first keeps.
  std::printf(
      "             an idle agent: %zu bytes of heap; a peer that is known and unused: %zu, and %zu of its card\n",
      each, known, with_card - known);
  EXPECT_LE(each, 16U * 1024);
  EXPECT_LE(known, 128U);
  EXPECT_LE(with_card - known, 640U);
}

}  // namespace
}  // namespace hawser::real
