#include "backend/sim/world.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/sim/fabric.h"
#include "backend/sim/host.h"

namespace hawser::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(World, RunsEventsInOrderOfTimeThenOfMaking) {
  World world({.seed = 1});
  std::string order;
  const Instant start = world.now();
  world.after(microseconds(5), [&] { order += 'c'; });
  world.after(microseconds(1), [&] { order += 'a'; });
  world.after(microseconds(5), [&] { order += 'd'; });
  world.after(microseconds(1), [&] {
    order += 'b';
    world.at(start, [&] { order += '!'; });  // The past is now.
  });
  world.run_for(microseconds(10));
  EXPECT_EQ(order, "ab!cd");
  EXPECT_EQ(world.now() - start, microseconds(10));
}

TEST(World, RunUntilStopsWhenItHolds) {
  World world({.seed = 1});
  int count = 0;
  for (int i = 1; i <= 10; ++i) world.after(microseconds(i), [&] { ++count; });
  const Instant end = world.now() + milliseconds(1);
  EXPECT_TRUE(world.run_until(end, [&] { return count == 4; }));
  EXPECT_EQ(count, 4);
  EXPECT_FALSE(world.run_until(end, [&] { return count == 99; }));
  EXPECT_EQ(world.now(), end);
}

TEST(World, TheHashTellsRunsApart) {
  const auto run = [](std::uint64_t seed) {
    World world({.seed = seed});
    for (int i = 0; i < 100; ++i) {
      world.after(Duration(world.rng().range(0, 1000)),
                  [&world, i] { world.note("event", "x", static_cast<std::uint64_t>(i)); });
    }
    world.run_for(milliseconds(1));
    return world.trace_hash();
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST(Host, TurnsWhenWokenAndAtItsOwnTimer) {
  World world({.seed = 1});
  const auto host = Host::create(world, "a", 0);
  std::vector<std::int64_t> turns;
  const Instant start = world.now();
  host->set_turn([&](Instant now) -> Host::Turned {
    turns.push_back((now - start).count());
    return {.next = turns.size() == 1 ? now + microseconds(50) : Instant::max()};
  });
  world.run_for(milliseconds(1));
  EXPECT_TRUE(turns.empty());  // Nobody woke it.
  host->wake();
  world.run_for(milliseconds(1));
  ASSERT_EQ(turns.size(), 2U);
  EXPECT_EQ(turns[1] - turns[0], 50'000);
}

TEST(Host, AStoppedOneTurnsNotUntilItGoesOn) {
  World world({.seed = 1});
  const auto host = Host::create(world, "a", 0);
  int turns = 0;
  host->set_turn([&](Instant) -> Host::Turned { return ++turns, Host::Turned{}; });
  host->wake();
  host->stop();
  host->wake();
  world.run_for(milliseconds(5));
  EXPECT_EQ(turns, 0);
  host->resume();
  world.run_for(milliseconds(5));
  EXPECT_EQ(turns, 1);
  host->wake();
  host->die();
  world.run_for(milliseconds(5));
  EXPECT_EQ(turns, 1);
}

TEST(Host, APassedTimerDoesNotStopTheClock) {
  World world({.seed = 1});
  const auto host = Host::create(world, "a", 0);
  int turns = 0;
  host->set_turn([&](Instant now) -> Host::Turned { return ++turns, Host::Turned{.next = now - microseconds(1)}; });
  host->wake();
  world.run_for(microseconds(100));
  EXPECT_GE(turns, 99);
  EXPECT_LE(turns, 101);
}

TEST(Fabric, SegmentsTakeTurnsOnALink) {
  World world({.seed = 1});
  Fabric fabric(world);
  fabric.set_default({.latency = microseconds(10), .bytes_per_ns = 0.5});
  const Instant start = world.now();
  EXPECT_EQ(fabric.arrival(0, 1, 1000) - start, microseconds(12));
  EXPECT_EQ(fabric.arrival(0, 1, 1000) - start, microseconds(14));
  EXPECT_EQ(fabric.arrival(1, 0, 1000) - start, microseconds(12));  // The other way is free.
}

TEST(Fabric, WhatIsCutArrivesOnceHealed) {
  World world({.seed = 1});
  Fabric fabric(world);
  std::string order;
  fabric.cut(0, 1);
  fabric.deliver(0, 1, world.now() + microseconds(1), [&] { order += 'a'; });
  fabric.deliver(0, 1, world.now() + microseconds(2), [&] { order += 'b'; });
  fabric.deliver(1, 0, world.now() + microseconds(3), [&] { order += '<'; });
  world.run_for(milliseconds(10));
  EXPECT_EQ(order, "<");
  fabric.heal_all();
  world.run_for(milliseconds(10));
  EXPECT_EQ(order, "<ab");
}

}  // namespace
}  // namespace hawser::sim
