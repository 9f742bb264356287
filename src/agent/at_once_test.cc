// Transfers that are over when submit returns.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

class AtOnce : public testing::Test {
 protected:
  AtOnce() {
    const Plan first = plan();
    EXPECT_TRUE(first.submit().value().wait().ok());  // It finds the way.
  }

  static Agent open() {
    AgentOptions options;
    options.name = "alone";
    options.limits.transfers = 1;
    return std::move(open_with(std::move(options), {backend::loopback_factory()}).value());
  }
  Plan plan() {
    const LocalRange from = source_.range(0, 64);
    const RemoteRange to = agent_.self().range("target", 0, 64);
    return agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1}).value();
  }

  Agent agent_ = open();
  Region source_ = agent_.allocate({.name = "source", .size = 4096}).value();
  Region target_ = agent_.allocate({.name = "target", .size = 4096}).value();
};

TEST_F(AtOnce, TheyNeedNoPlaceAndAreCounted) {
  const Plan write = plan();
  const FlowCounters before = agent_.counters().total;
  std::vector<Transfer> held;  // More than limits.transfers.
  for (int i = 0; i < 16; ++i) {
    std::ranges::fill(source_.bytes(), static_cast<std::byte>(i));
    held.push_back(write.submit().value());
    ASSERT_TRUE(held.back().done());
    EXPECT_EQ(held.back().bytes(), 64u);
    EXPECT_EQ(target_.bytes()[63], static_cast<std::byte>(i));
  }
  const FlowCounters after = agent_.counters().total;
  EXPECT_EQ(after.writes, before.writes + 16);
  EXPECT_EQ(after.bytes_written, before.bytes_written + 16 * 64);
  EXPECT_GT(after.latency.count, before.latency.count);  // One in eight is timed.
  EXPECT_EQ(agent_.counters().transfers_in_flight_gauge, 0u);
  for (Transfer& each : held) EXPECT_TRUE(each.wait(Duration::zero()).ok());
}

TEST_F(AtOnce, HandlesOutliveTheAgent) {
  Transfer over = plan().submit().value();
  EXPECT_TRUE(agent_.close(std::chrono::seconds(5)).ok());
  source_ = Region();
  target_ = Region();
  agent_ = Agent();
  EXPECT_TRUE(over.done() && over.wait().ok() && over.status().ok());
  EXPECT_EQ(over.bytes(), 64u);
}

TEST_F(AtOnce, WhatATurnEndsIsTimedHoweverOldTheTurnsClockIs) {
  const Plan write = plan();
  Core& core = *core_of(agent_);
  const std::uint64_t before = agent_.counters().total.latency.count;
  constexpr std::uint64_t kTimes = 7;  // Of those that are over within submit one in eight is timed.
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    core.lane.lock();
    const Instant stale = core.now();
    Transfer sent;
    std::thread([&] { sent = write.submit().value(); }).join();  // The lane is held, so it is left for a turn.
    for (int turn = 0; turn < 100 && !sent.done(); ++turn) core.lane.turn(stale);
    core.lane.unlock();
    ASSERT_TRUE(sent.wait(std::chrono::seconds(5)).ok());
  }
  const FlowCounters after = agent_.counters().total;
  EXPECT_EQ(after.latency.count, before + kTimes);
}

TEST_F(AtOnce, WhatIsWrongIsToldAsEver) {
  const Plan write = plan();
  EXPECT_EQ(write.submit({.deadline = Duration(-1)}).error().code(), Code::kInvalid);
  const std::string large(kMessageMax + 1, 'x');
  EXPECT_EQ(write.submit({.notify = large}).error().code(), Code::kInvalid);
  EXPECT_TRUE(source_.close(std::chrono::seconds(5)).ok());
  EXPECT_EQ(write.submit().error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::agent
