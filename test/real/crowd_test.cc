// Many peers of one agent in one process: time, memory and descriptors stay within bounds.

#include <sys/resource.h>

#include <cstdio>
#include <fstream>

#include "real_test.h"

namespace hawser::real {
namespace {

#if defined(HAWSER_SANITIZE_THREAD) || defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED)
constexpr std::size_t kPeers = 150;
#else
constexpr std::size_t kPeers = 1000;
#endif
constexpr std::size_t kDescriptorsPerPeer = 20;
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
  if (!raise_descriptors(kPeers * kDescriptorsPerPeer)) {
    GTEST_SKIP() << "needs " << kPeers * kDescriptorsPerPeer << " descriptors; raise `ulimit -n`";
  }
  AgentOptions patient = quick("here");
  patient.heartbeat = kPatientHeartbeat;
  Here here(GetParam(), patient);
  Memory& source = here.add("source", 4096);
  std::ranges::fill(source.bytes, std::byte{3});
  const std::size_t before = resident_kib();
  const Instant begun = now();
  // Few drivers run all guests: each of them is as small as an agent may be.
  Driver drivers = must(Driver::start({.threads = 1}));
  std::vector<std::unique_ptr<Guest>> guests;
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < kPeers; ++i) {
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
              kPeers, static_cast<double>((opened - begun).count()) / 1e6,
              static_cast<double>((met - opened).count()) / 1e6, static_cast<double>(grown) / kPeers);
  EXPECT_LE(met - begun, 60s);
#if !defined(HAWSER_SANITIZE_THREAD) && !defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED)
  EXPECT_LE(grown / kPeers, 1024U);
#endif
  EXPECT_EQ(here.agent().peers().size(), kPeers);
  for (auto& guest : guests) (void)drivers.detach(guest->agent);
  const Instant closing = now();
  guests.clear();
  print_time("closed in", now() - closing);
  EXPECT_TRUE(eventually([&] { return here.agent().peers().empty(); }, 60s));
}

}  // namespace
}  // namespace hawser::real
