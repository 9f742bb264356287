// How agents over RDMA connect: once, whoever asks first and how many do; to themselves; and with nothing left behind.
// Whole agents over a fabric in memory. Names begin with the row of the list of conformance.

#include <dirent.h>
#include <malloc.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>

#include <gmock/gmock.h>

#include <hawser/driver.h>

#include "mock_agents.h"

namespace hawser::mock_agents {
namespace {

using namespace std::chrono_literals;
using backend::verbs::MockCounts;

constexpr std::size_t kPart = 512;

/// A plan for part `i` of the source's memory.
Plan plan_part(Agent& from, const Peer& to, const Area& source, const std::string& target, std::size_t i) {
  const LocalRange here = source.region.range(i * kPart, kPart);
  const RemoteRange there = to.range(target, i * kPart, kPart);
  return must(from.plan_write(to, {&here, 1}, {&there, 1}));
}

void fill(Area& area, std::uint64_t seed) {
  base::Rng rng(seed);
  for (std::byte& byte : area.bytes) byte = static_cast<std::byte>(rng.below(256));
}

TEST(VerbsConnect, C4_ManyFirstRequestsMakeOneConnection) {
  constexpr std::size_t kPlans = 64;
  MockWorld world;
  Agent a = world.open("a", "mock0"), b = world.open("b", "mock1");
  Area source(a, "source", kPlans * kPart), target(b, "target", kPlans * kPart);
  fill(source, 1);
  const Peer peer = must(a.add_peer(must(b.card())));
  std::vector<Transfer> sent;
  for (std::size_t i = 0; i < kPlans; ++i) sent.push_back(must(plan_part(a, peer, source, "target", i).submit()));
  ASSERT_EQ(world.queue_pairs_made(), 0u) << "nobody has taken a turn yet";
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return std::ranges::all_of(sent, &Transfer::done); }));
  for (const Transfer& each : sent) EXPECT_TRUE(each.status().ok()) << each.status().to_string();
  EXPECT_EQ(target.bytes, source.bytes);
  EXPECT_EQ(world.queue_pairs_made(), 2u) << "one at each end";
  EXPECT_EQ(a.counters().paths.size(), 1u);
}

/// Agents with a thread each, and threads that submit.
struct Driven {
  Driven() {
    must(driver.attach(a));
    must(driver.attach(b));
  }
  ~Driven() {
    EXPECT_TRUE(a.close(20s).ok());
    EXPECT_TRUE(b.close(20s).ok());
  }
  /// `threads` of them, let go at once, submit a part each to the peer, and await it.
  static void write(Agent& from, const Peer& to, const Area& source, const std::string& target, std::size_t part,
                    std::barrier<>& gate) {
    gate.arrive_and_wait();
    Transfer sent = must(plan_part(from, to, source, target, part).submit({.deadline = 20s}));
    const Status status = sent.wait(30s);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

  MockWorld world;
  Driver driver = must(Driver::start({.threads = 2}));
  Agent a = world.open("a", "mock0", true), b = world.open("b", "mock1", true);
};

TEST(VerbsConnect, C4_ManyThreadsMakeOneConnection) {
  constexpr std::size_t kThreads = 8;
  for (std::uint64_t round = 0; round < 5; ++round) {
    Driven both;
    Area source(both.a, "source", kThreads * kPart), target(both.b, "target", kThreads * kPart);
    fill(source, round);
    const Peer peer = must(both.a.add_peer(must(both.b.card())));
    std::barrier gate(kThreads);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { Driven::write(both.a, peer, source, "target", i, gate); });
    }
    threads.clear();
    EXPECT_EQ(target.bytes, source.bytes);
    EXPECT_EQ(both.world.queue_pairs_made(), 2u);
  }
}

TEST(VerbsConnect, C4_BothEndsAtOnceDoNotWaitForEachOther) {
  constexpr std::size_t kThreads = 4;
  for (std::uint64_t round = 0; round < 10; ++round) {
    Driven both;
    Area from_a(both.a, "source", kThreads * kPart), to_b(both.b, "target", kThreads * kPart);
    Area from_b(both.b, "source", kThreads * kPart), to_a(both.a, "target", kThreads * kPart);
    fill(from_a, round);
    fill(from_b, 100 + round);
    const Peer b = must(both.a.add_peer(must(both.b.card()))), a = must(both.b.add_peer(must(both.a.card())));
    std::barrier gate(2 * kThreads);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { Driven::write(both.a, b, from_a, "target", i, gate); });
      threads.emplace_back([&, i] { Driven::write(both.b, a, from_b, "target", i, gate); });
    }
    threads.clear();
    EXPECT_EQ(to_b.bytes, from_a.bytes);
    EXPECT_EQ(to_a.bytes, from_b.bytes);
    // Each end's path may have come up before it heard of the other's: both stay (docs/architecture.md).
    const Instant end = Clock::steady().now() + 10s;
    while (both.world.queue_pairs() % 2 != 0 && Clock::steady().now() < end) std::this_thread::yield();
    EXPECT_THAT(both.world.queue_pairs(), testing::AnyOf(2, 4)) << "one connection, or one by each end";
    EXPECT_LE(both.world.queue_pairs_made(), 4u);
  }
}

TEST(VerbsConnect, C4_BothEndsByTurnsHaveTwoPathsAtMost) {
  MockWorld world;
  Agent a = world.open("a", "mock0"), b = world.open("b", "mock1");
  Area from_a(a, "source", kPart), to_b(b, "target", kPart), from_b(b, "source", kPart), to_a(a, "target", kPart);
  fill(from_a, 1);
  fill(from_b, 2);
  const Peer peer_b = must(a.add_peer(must(b.card()))), peer_a = must(b.add_peer(must(a.card())));
  Transfer there = must(plan_part(a, peer_b, from_a, "target", 0).submit());
  Transfer back = must(plan_part(b, peer_a, from_b, "target", 0).submit());
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return there.done() && back.done(); }));
  EXPECT_TRUE(there.status().ok()) << there.status().to_string();
  EXPECT_TRUE(back.status().ok()) << back.status().to_string();
  EXPECT_EQ(to_b.bytes, from_a.bytes);
  EXPECT_EQ(to_a.bytes, from_b.bytes);
  EXPECT_LE(world.queue_pairs_made(), 4u);
}

/// A write to `to` with a notification, both of which arrive at `target`.
void write_and_notify(Agent& from, Agent& at, const Peer& to, Area& source, const Area& target, std::uint64_t seed) {
  fill(source, seed);
  const std::string text = "part " + std::to_string(seed);
  const Transfer sent =
      must(plan_part(from, to, source, std::string(target.region.name()), 0).submit({.notify = text}));
  std::optional<Notification> heard;
  ASSERT_TRUE(poll_until({&from, &at}, [&] {
    if (!heard) heard = at.take_notification();
    return sent.done() && (heard || !sent.status().ok());
  }));
  ASSERT_TRUE(sent.status().ok()) << sent.status().to_string();
  EXPECT_EQ(heard->text, text);
  EXPECT_EQ(target.bytes, source.bytes);
}

TEST(VerbsConnect, C5_AnAgentIsItsOwnPeerWithoutAConnection) {
  MockWorld world;
  Agent a = world.open("a", "mock0", false, {loopback()});
  Area source(a, "source", kPart), target(a, "target", kPart);
  write_and_notify(a, a, a.self(), source, target, 1);
  EXPECT_EQ(world.queue_pairs_made(), 0u);
  ASSERT_EQ(a.counters().paths.size(), 1u);
  EXPECT_EQ(a.counters().paths[0].backend, "loopback");
}

TEST(VerbsConnect, C5_WithVerbsAloneOneselfIsRefusedAtOnceAndTheRemedyIsTold) {
  MockWorld world;
  Agent a = world.open("a", "mock0");
  Area source(a, "source", kPart), target(a, "target", kPart);
  const Plan plan = plan_part(a, a.self(), source, "target", 0);
  EXPECT_NE(a.explain(plan).find("that is this agent itself"), std::string::npos) << a.explain(plan);
  Transfer sent = must(plan.submit());
  ASSERT_TRUE(poll_until(
      {&a}, [&] { return sent.done(); }, 1s));
  EXPECT_FALSE(sent.status().ok());
  EXPECT_NE(sent.status().to_string().find("open the backend loopback"), std::string::npos)
      << sent.status().to_string();
  EXPECT_EQ(target.bytes, std::vector<std::byte>(kPart));
  EXPECT_EQ(world.queue_pairs_made(), 0u);
}

TEST(VerbsConnect, C5_LoopbackThatIsOpenedAfterTheRefusalIsTaken) {
  MockWorld world;
  Agent a = world.open("a", "mock0");
  Area source(a, "source", kPart), target(a, "target", kPart);
  Transfer refused = must(plan_part(a, a.self(), source, "target", 0).submit());
  ASSERT_TRUE(poll_until(
      {&a}, [&] { return refused.done(); }, 1s));
  must(a.add_backend(loopback()));
  write_and_notify(a, a, a.self(), source, target, 1);
  EXPECT_EQ(world.queue_pairs_made(), 0u);
}

TEST(VerbsConnect, C5_AgentsOfOneProcessMeetOnOneDevice) {
  MockWorld world;
  Agent a = world.open("a", "mock0"), b = world.open("b", "mock0");
  Area source(a, "source", kPart), target(b, "target", kPart);
  const Peer peer = must(a.add_peer(must(b.card())));
  write_and_notify(a, b, peer, source, target, 1);
  world.with([](auto& fabric) {
    EXPECT_EQ(fabric.qps(), 2u);
    for (const std::uint32_t number : fabric.qp_numbers()) EXPECT_EQ(fabric.device_of(number), "mock0");
  });
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// HAWSER_CONNECTIONS for more of them: docs/testing.md.
int wanted_connections(int usual) {
  const char* const said = std::getenv("HAWSER_CONNECTIONS");
  return said == nullptr ? usual : std::max(std::atoi(said), usual);
}

struct Kept {
  explicit Kept(MockWorld& world)
      : objects(world.counts()), pinned(world.with([](auto& fabric) { return fabric.memory.bytes_pinned(); })) {}
  MockCounts objects;
  std::uint64_t pinned;  ///< Bytes.
  std::size_t descriptors = open_descriptors();
  std::size_t heap = ::mallinfo2().uordblks;  ///< Bytes; a sanitizer's heap tells 0.
};

TEST(VerbsConnect, C24_ConnectionsComeAndGoAndLeaveNothing) {
  constexpr int kWarmUp = 10;
  const int rounds = kWarmUp + wanted_connections(200);
  MockWorld world;
  Agent a = world.open("a", "mock0"), b = world.open("b", "mock1");
  Area source(a, "source", kPart), target(b, "target", kPart);
  const std::string card = must(b.card());
  std::optional<Kept> before;
  const auto visit = [&](int number) {
    const Peer peer = must(a.add_peer(card));
    ASSERT_NO_FATAL_FAILURE(write_and_notify(a, b, peer, source, target, static_cast<std::uint64_t>(number)));
    must(a.invalidate(peer));
    ASSERT_TRUE(poll_until({&a, &b}, [&] {
      return a.peers().empty() && b.peers().empty() && world.queue_pairs() == 0;
    })) << number;
    while (a.take_event() || b.take_event()) {
    }
  };
  for (int i = 0; i < rounds; ++i) {
    if (i == kWarmUp) before.emplace(world);
    ASSERT_NO_FATAL_FAILURE(visit(i));
  }
  std::optional<Kept> after;
  EXPECT_TRUE(poll_until({&a, &b}, [&] {
    after.emplace(world);
    return after->objects == before->objects && after->descriptors <= before->descriptors;
  }));
  EXPECT_EQ(after->objects, before->objects);
  EXPECT_EQ(after->pinned, before->pinned);
  EXPECT_LE(after->descriptors, before->descriptors);
  const std::size_t growth = after->heap > before->heap ? after->heap - before->heap : 0;
  EXPECT_LE(growth, 32U * 1024) << "bytes of heap";
  EXPECT_GE(world.queue_pairs_made(), 2U * static_cast<unsigned>(rounds));
  std::cout << rounds - kWarmUp << " connections; the heap grew by " << growth << " bytes\n";
}

}  // namespace
}  // namespace hawser::mock_agents
