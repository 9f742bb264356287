// Handles that hold nothing: never filled, or moved away from. They answer, and do not end the process.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <utility>

#include <hawser/hawser.h>

namespace hawser {
namespace {

using namespace std::chrono_literals;

Agent open_agent(std::string name) {
  AgentOptions options;
  options.name = std::move(name);
  options.backends = {{"loopback", {}}};
  return std::move(Agent::open(std::move(options)).value());
}

TEST(MovedFrom, AnAgentRefusesAllCalls) {
  Agent agent = open_agent("moved");
  const Agent other = std::move(agent);
  EXPECT_EQ(agent.name(), "");  // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(agent.self().valid());
  EXPECT_EQ(agent.ticket(), "");
  EXPECT_EQ(agent.card_revision(), 0u);
  EXPECT_EQ(agent.event_fd(), -1);
  EXPECT_EQ(agent.poll(), 0u);
  EXPECT_FALSE(agent.wait(1ms));
  EXPECT_FALSE(agent.take_notification());
  EXPECT_FALSE(agent.take_message(20));
  EXPECT_FALSE(agent.take_event());
  EXPECT_TRUE(agent.peers().empty());
  EXPECT_TRUE(agent.backends().empty());
  EXPECT_TRUE(agent.counters().agent.empty());
  const LocalRange none;
  const RemoteRange nowhere;
  const RangeTable table;
  const std::uint32_t first = 0;
  for (const Status& status : {agent.close(1ms),
                               agent.add_region({}).error(),
                               agent.allocate({.size = 8}).error(),
                               agent.add_file({}).error(),
                               agent.card().error(),
                               agent.partial_card({}).error(),
                               agent.card_delta(0).error(),
                               agent.add_peer(std::string_view("card")).error(),
                               agent.find_peer("x", 1ms).error(),
                               agent.invalidate({}),
                               agent.import_grant(std::string_view("grant")).error(),
                               agent.add_backend({"tcp", {}}),
                               agent.require_backend("tcp"),
                               agent.plan_write({}, {&none, 1}, {&nowhere, 1}).error(),
                               agent.plan_read({}, {&nowhere, 1}, {&none, 1}).error(),
                               agent.plan_write({}, table, {&first, 1}, table, {&first, 1}).error(),
                               agent.end(1).error(),
                               agent.open_channel(20),
                               agent.read_signal(none).error(),
                               agent.wait_signal(none, 1, 1ms),
                               agent.make_queue().error()}) {
    EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
  }
  Driver driver = Driver::start().value();
  EXPECT_EQ(driver.attach(agent).code(), Code::kInvalid);
  EXPECT_EQ(driver.detach(agent).code(), Code::kInvalid);
}

TEST(MovedFrom, ADriverRefusesAgents) {
  Agent agent = open_agent("driven");
  Driver driver = Driver::start().value();
  Driver other = std::move(driver);
  EXPECT_EQ(driver.attach(agent).code(), Code::kInvalid);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(driver.detach(agent).code(), Code::kInvalid);
  EXPECT_TRUE(other.attach(agent).ok());
}

TEST(MovedFrom, ARegionHasNothing) {
  Agent agent = open_agent("regions");
  Region region = agent.allocate({.name = "r", .size = 4096}).value();
  const Region other = std::move(region);
  EXPECT_EQ(region.name(), "");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(region.size(), 0u);
  EXPECT_TRUE(region.bytes().empty());
  EXPECT_EQ(region.rights(), Rights::kNone);
  EXPECT_EQ(region.index(), 0u);
  EXPECT_FALSE(region.listed());
  EXPECT_FALSE(region.huge_pages());
  EXPECT_EQ(region.device().kind, DeviceKind::kHost);
  for (const Status& status :
       {region.close(1ms), region.table(8).status(), region.table(StridedRange{.size = 8}).status(), region.mappable(),
        region.grant(0, 1, Rights::kRead, 1s).error()}) {
    EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
  }
  const LocalRange none = region.range(0, 8);
  const RemoteRange there = agent.self().range("r", 0, 8);
  EXPECT_EQ(agent.plan_write(agent.self(), {&none, 1}, {&there, 1}).error().code(), Code::kInvalid);
}

TEST(MovedFrom, PlansAndQueuesHaveNothing) {
  Agent agent = open_agent("queues");
  Region region = agent.allocate({.name = "r", .size = 4096}).value();
  const LocalRange here = region.range(0, 8);
  const RemoteRange there = agent.self().range("r", 8, 8);
  Plan plan = agent.plan_write(agent.self(), {&here, 1}, {&there, 1}).value();
  const Plan other = std::move(plan);
  EXPECT_EQ(plan.bytes(), 0u);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(plan.range_count(), 0u);
  EXPECT_EQ(plan.piece_count(), 0u);
  EXPECT_EQ(plan.operation(), Operation::kWrite);
  EXPECT_EQ(plan.submit().error().code(), Code::kInvalid);
  EXPECT_EQ(Plan::join({&plan, 1}).error().code(), Code::kInvalid);
  CompletionQueue queue = agent.make_queue(8).value();
  const CompletionQueue kept = std::move(queue);
  std::array<Completion, 2> out;
  EXPECT_EQ(queue.poll(out), 0u);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(queue.wait(out, 1ms), 0u);
  EXPECT_EQ(queue.event_fd(), -1);
  EXPECT_EQ(queue.capacity(), 0u);
  EXPECT_EQ(other.submit({.queue = &queue}).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser
