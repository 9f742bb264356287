// Regions that close while transfers use them.

#include <gtest/gtest.h>

#include <thread>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

class CoreClosing : public testing::Test {
 protected:
  static Agent open() {
    AgentOptions options;
    options.name = "alone";
    return std::move(open_with(std::move(options), {backend::loopback_factory()}).value());
  }
  Plan plan() {
    const LocalRange from = source_.range(0, 64);
    const RemoteRange to = agent_.self().range("target", 0, 64);
    return agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1}).value();
  }
  /// Submitted while somebody else holds the lane, so that it waits for who holds it next.
  Transfer left_for_the_lane(const Plan& plan) {
    Lane& lane = core_of(agent_)->lane;
    lane.lock();
    Transfer sent;
    std::thread([&] { sent = plan.submit().value(); }).join();
    lane.unlock();
    return sent;
  }

  Agent agent_ = open();
  Region source_ = agent_.allocate({.name = "source", .size = 4096}).value();
  Region target_ = agent_.allocate({.name = "target", .size = 4096}).value();
};

TEST_F(CoreClosing, WhatWasSubmittedBeforeIsCancelledAndFinal) {
  ASSERT_TRUE(plan().submit().value().wait().ok());  // It finds the way.
  const Transfer sent = left_for_the_lane(plan());
  ASSERT_FALSE(sent.done());
  const Status closed = source_.close(std::chrono::seconds(10));
  ASSERT_TRUE(closed.ok()) << closed.to_string();
  EXPECT_TRUE(sent.done());
  EXPECT_EQ(sent.status().code(), Code::kCancelled) << sent.status().to_string();
}

}  // namespace
}  // namespace hawser::agent
