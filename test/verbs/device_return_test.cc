// A device that is removed and comes back, as whole agents see it: what moves by it goes on by tcp meanwhile, and by it
// again afterwards, plans of before included.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <hawser/driver.h>

#include "backend/tcp/factory.h"
#include "mock_agents.h"

namespace hawser::mock_agents {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWritten = 8192;

class DeviceReturn : public testing::TestWithParam<std::string> {
 protected:
  Agent open(const std::string& name, const std::string& device) {
    AgentOptions options;
    options.name = name;
    options.backends = {verbs({{"devices", device}, {"patience", "200ms"}}), tcp()};
    options.driven = true;
    options.log.level = LogLevel::kError;
    Agent agent = must(
        agent::open_with(std::move(options), {backend::loopback_factory(), world_.factory(), backend::tcp_factory()}));
    must(driver_.attach(agent));
    return agent;
  }
  void TearDown() override {
    EXPECT_TRUE(a_.close(20s).ok());
    EXPECT_TRUE(b_.close(20s).ok());
    a_ = Agent();
    b_ = Agent();
    EXPECT_EQ(world_.counts(), backend::verbs::MockCounts{}) << "something leaked";
  }
  /// The bytes that go by the backend `by`, one write.
  bool moves_by(Plan& plan, Area& source, const Area& target, const std::string& by) {
    std::ranges::fill(source.bytes, std::byte(++value_));
    const std::uint64_t before = bytes_out(by);
    Transfer sent = must(plan.submit({.deadline = 20s}));
    const Status status = sent.wait(30s);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(std::ranges::count(target.bytes, std::byte(value_)), static_cast<std::ptrdiff_t>(kWritten));
    return bytes_out(by) >= before + kWritten;
  }
  std::uint64_t bytes_out(const std::string& by) {
    std::uint64_t bytes = 0;
    for (const PathCounters& path : a_.counters().paths) bytes += path.backend == by ? path.bytes_out : 0;
    return bytes;
  }
  bool comes_to_move_by(Plan& plan, Area& source, const Area& target, const std::string& by) {
    for (const Instant until = Clock::steady().now() + 30s; Clock::steady().now() < until;) {
      if (moves_by(plan, source, target, by)) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  MockWorld world_;
  Driver driver_ = must(Driver::start({.threads = 2}));
  Agent a_, b_;
  int value_ = 0;
};

TEST_P(DeviceReturn, PlansGoBackToIt) {
  a_ = open("a", "mock0");
  b_ = open("b", "mock1");
  Area source(a_, "source", kWritten), target(b_, "target", kWritten);
  const Peer peer = must(a_.add_peer(must(b_.card())));
  const LocalRange here = source.region.range(0, kWritten);
  const RemoteRange there = peer.range("target", 0, kWritten);
  Plan plan = must(a_.plan_write(peer, {&here, 1}, {&there, 1}));
  ASSERT_TRUE(comes_to_move_by(plan, source, target, "verbs"));
  world_.with([](auto& fabric) { fabric.remove(GetParam()); });
  ASSERT_TRUE(comes_to_move_by(plan, source, target, "tcp"));
  world_.with([](auto& fabric) { fabric.put_back(GetParam()); });
  ASSERT_TRUE(comes_to_move_by(plan, source, target, "verbs")) << "a plan of before";
  const RemoteRange again = peer.range("target", 0, kWritten);
  Plan fresh = must(a_.plan_write(peer, {&here, 1}, {&again, 1}));
  EXPECT_TRUE(moves_by(fresh, source, target, "verbs"));
}

INSTANTIATE_TEST_SUITE_P(Of, DeviceReturn, testing::Values("mock0", "mock1"),
                         [](const auto& test) { return test.param == "mock0" ? "ours" : "the_peers"; });

}  // namespace
}  // namespace hawser::mock_agents
