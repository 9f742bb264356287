// An agent with a plug-in that breaks the contract: nothing hangs, everything ends with a status, the rest goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hawser/agent.h>
#include <hawser/driver.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace hawser {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Duration kPatience = 20s;  // What is to end does so long before, also under load.
constexpr Duration kShort = 200ms;   // For what is to run into it.

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}

struct Sin {
  const char* does;
  Code transfer;            ///< How a transfer to a peer by it ends,
  const char* says = "";    ///< with what in its text.
  Code region = Code::kOk;  ///< How closing a region ends,
  Code agent = Code::kOk;   ///< and the agent.
};

AgentOptions with_hostile(std::string name, std::string does, bool driven, Duration peer_timeout = kPatience) {
  return {.name = std::move(name),
          .backends = {{"hostile", {{"does", std::move(does)}}}, {"loopback", {}}},
          .plugin_paths = {HAWSER_HOSTILE_PLUGIN},
          .peer_timeout = peer_timeout,
          .driven = driven,
          .log = {.level = LogLevel::kOff}};
}

void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.to_string());
}

class Hostile : public ::testing::TestWithParam<std::tuple<Sin, bool>> {};

TEST_P(Hostile, EverythingEnds) {
  const auto& [sin, driven] = GetParam();
  const Instant began = Clock::steady().now();
  std::optional<Driver> driver;
  if (driven) driver.emplace(must(Driver::start()));
  const bool stays = sin.transfer == Code::kTimedOut;  // The peer, until the deadline.
  Agent a = must(Agent::open(with_hostile("a", sin.does, driven, stays ? kPatience : kShort)));
  Agent b = must(Agent::open(with_hostile("b", "behave", false)));
  if (driven) must(driver->attach(a));

  std::vector<std::byte> memory(64, std::byte{1}), local(64, std::byte{2}), mine(64);
  const Region target = must(b.add_region({.name = "t", .bytes = memory}));
  Region source = must(a.add_region({.name = "s", .bytes = local}));
  const Region other = must(a.add_region({.name = "o", .bytes = mine}));
  const Peer peer = must(a.add_peer(must(b.card())));
  const Plan plan = must(a.plan_write(peer, {{source.range(0, 64)}}, {{peer.range("t", 0, 64)}}));
  Transfer sent = must(plan.submit({.deadline = stays ? kShort : kPatience}));
  const Status ended = sent.wait(kPatience);
  EXPECT_TRUE(sent.done());
  EXPECT_EQ(ended.code(), sin.transfer) << ended.to_string();
  EXPECT_THAT(ended.to_string(), HasSubstr(sin.says));

  // What does not need it goes on.
  const Peer own = a.self();
  const Plan within = must(a.plan_write(own, {{source.range(0, 64)}}, {{own.range("o", 0, 64)}}));
  const Status good = must(within.submit()).wait(kPatience);
  EXPECT_TRUE(good.ok()) << good.to_string();
  EXPECT_EQ(mine, local);

  const Status region = source.close(sin.region == Code::kOk ? kPatience : kShort);
  EXPECT_EQ(region.code(), sin.region) << region.to_string();
  const Status agent = a.close(sin.agent == Code::kOk ? kPatience : kShort);
  EXPECT_EQ(agent.code(), sin.agent) << agent.to_string();
  EXPECT_LT(Clock::steady().now() - began, kPatience);
}

const Sin kSins[] = {
    // The path is up and carries nothing: the deadline ends the transfer.
    {"behave", Code::kTimedOut},
    {"spin", Code::kTimedOut},
    {"go down", Code::kTimedOut},
    {"be due", Code::kTimedOut},
    {"never sleep", Code::kTimedOut},
    {"hold regions", Code::kTimedOut, "", Code::kTimedOut, Code::kTimedOut},
    {"never end", Code::kTimedOut, "", Code::kOk, Code::kTimedOut},
    // The peer is given up, and the cause is told.
    {"never come up", Code::kDisconnected, "no path came up within peer_timeout"},
    {"flood", Code::kDisconnected, "session message of unknown kind"},
    {"count wrongly", Code::kDisconnected, "libhawser_backend_hostile.so) broke the contract: poll gave 1064 events"},
    {"end what never began", Code::kDisconnected, "broke the contract: chunk 0x1 ended, which is not in flight"},
    {"be wild", Code::kDisconnected, "broke the contract: an event of kind 2 is of an unknown path"},
};
INSTANTIATE_TEST_SUITE_P(All, Hostile, ::testing::Combine(::testing::ValuesIn(kSins), ::testing::Bool()),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param).does;
                           std::ranges::replace(name, ' ', '_');
                           return name + (std::get<1>(one.param) ? "_driven" : "_polled");
                         });

TEST(HostilePlugin, ADescriptorThatIsNoneFailsToOpen) {
  const auto agent = Agent::open(with_hostile("a", "wait for nothing", false));
  ASSERT_FALSE(agent);
  EXPECT_THAT(agent.error().to_string(), HasSubstr("hostile"));
}

}  // namespace
}  // namespace hawser
