// What a driver keeps of agents, and agents of a driver.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

Agent open_alone(const std::string& name) {
  return std::move(open_with({.name = name}, {backend::loopback_factory()}).value());
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(Driver, KeepsNothingOfAgentsThatWereClosed) {
  Driver driver = Driver::start().value();
  std::size_t descriptors = 0;
  for (int round = 0; round < 30; ++round) {
    if (round == 5) descriptors = open_descriptors();
    Agent agent = open_alone("guest");
    ASSERT_TRUE(driver.attach(agent).ok());
    const std::weak_ptr<Core> core = agent.core();
    ASSERT_TRUE(agent.close(1s).ok());
    agent = Agent();
    EXPECT_TRUE(core.expired()) << "in round " << round;
  }
  EXPECT_LE(open_descriptors(), descriptors + 2);
}

TEST(Driver, AnAgentThatWasClosedIsDetached) {
  Driver driver = Driver::start().value();
  Agent agent = open_alone("a");
  ASSERT_TRUE(driver.attach(agent).ok());
  ASSERT_TRUE(agent.close(1s).ok());
  EXPECT_TRUE(driver.detach(agent).ok());
  EXPECT_EQ(driver.attach(agent).code(), Code::kInvalid);
  Agent other = open_alone("b");
  EXPECT_EQ(driver.detach(other).code(), Code::kNotFound);
  Agent none;
  EXPECT_EQ(driver.detach(none).code(), Code::kInvalid);
}

TEST(Driver, AgentsThatOutliveItAreRunByWhoeverWaits) {
  std::optional<Driver> driver = Driver::start().value();
  Agent agent = open_alone("a");
  ASSERT_TRUE(driver->attach(agent).ok());
  driver.reset();
  EXPECT_FALSE(agent.core()->lane.driven());
  Driver next = Driver::start().value();
  EXPECT_TRUE(next.attach(agent).ok());
}

}  // namespace
}  // namespace hawser::agent
