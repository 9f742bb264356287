// The example plug-in, built by another compiler and found as users find it: the conformance suite, and what only a
// plug-in can get wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hawser/config.h>

#include <algorithm>
#include <thread>

#include "agent_suite.h"

namespace hawser::conformance {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

AgentOptions with_mailslot(std::string name, Params params = {}) {
  return {.name = std::move(name), .backends = {{"mailslot", std::move(params)}}, .plugin_paths = {HAWSER_PLUGINS}};
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const bool driven : {false, true}) {
    for (const bool allocated : {false, true}) {
      Setting setting{.name = "mailslot", .backend = {"mailslot", {}}, .allocated = allocated, .polled = !driven};
      setting.name += allocated ? "_allocated" : "_foreign";
      setting.name += driven ? "_driven" : "_polled";
      setting.make = [driven]() -> Result<std::unique_ptr<Environment>> {
        RealOptions options{.backends = {{"mailslot", {}}}, .driven = driven};
        options.open_agent = [](AgentOptions its) {
          its.plugin_paths = {HAWSER_PLUGINS};
          return Agent::open(std::move(its));
        };
        return make_real_environment(std::move(options));
      };
      all.push_back(std::move(setting));
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Plugin, Conformance, testing::ValuesIn(settings()), name_of);

TEST(Mailslot, WasBuiltByAnotherCompiler) {
  const Agent agent = must(Agent::open(with_mailslot("a")));
  const std::string address = agent.backends().at(0).address;
#ifdef __clang__
  EXPECT_THAT(address, AllOf(HasSubstr("built by"), Not(HasSubstr("lang"))));
#else
  EXPECT_THAT(address, AllOf(HasSubstr("built by"), HasSubstr("lang")));
#endif
}

TEST(Mailslot, ParametersComeAcross) {
  const Agent agent = must(Agent::open(with_mailslot("a", {{"QUEUE", "7"}, {"colour", "red"}})));
  const BackendReport report = agent.backends().at(0);
  EXPECT_EQ(report.params, (Params{{"queue", "7"}}));
  EXPECT_THAT(report.warnings, ElementsAre("mailslot has no parameter 'colour'"));
  const auto wrong = Agent::open(with_mailslot("a", {{"queue", "no"}}));
  EXPECT_EQ(wrong.error().code(), Code::kInvalid);
  EXPECT_THAT(wrong.error().to_string(), HasSubstr("queue = 'no' is not a number from 1 to 4096"));
}

TEST(Mailslot, IsFoundByTheEnvironmentAndOnlyOpenedByName) {
  ConfigSources sources;
  sources.environment = {{"HAWSER_PLUGIN_PATH", "/nowhere:" HAWSER_PLUGINS},
                         {"HAWSER_BACKENDS", "loopback,mailslot"},
                         {"HAWSER_NAME", "a"},
                         {"HAWSER_LOG", "error"}};
  AgentOptions options = must(load_config(sources)).options;
  {
    const Agent named = must(Agent::open(options));
    EXPECT_TRUE(named.has_backend("mailslot"));
  }
  options.backends.clear();
  Agent agent = must(Agent::open(options));
  EXPECT_FALSE(agent.has_backend("mailslot"));
  EXPECT_TRUE(agent.add_backend({"MailSlot", {}}).ok());
  EXPECT_TRUE(agent.has_backend("mailslot"));
}

TEST(Mailslot, ExplainNamesIt) {
  Agent a = must(Agent::open(with_mailslot("a"))), b = must(Agent::open(with_mailslot("b")));
  std::vector<std::byte> memory(64), local(64);
  const Region target = must(b.add_region({.name = "t", .bytes = memory}));
  const Region source = must(a.add_region({.bytes = local}));
  const Peer peer = must(a.add_peer(must(b.card())));
  const Plan plan = must(a.plan_write(peer, {{source.range(0, 64)}}, {{peer.range("t", 0, 64)}}));
  EXPECT_THAT(a.explain(plan), HasSubstr("mailslot"));
}

// Several agents copy into one agent's memory at once, each from a thread of its own.
TEST(Mailslot, ManyWritersOneTarget) {
  constexpr std::size_t kWriters = 4, kSize = 1 << 20, kTimes = 20;
  Agent target = must(Agent::open(with_mailslot("target")));
  std::vector<std::byte> memory(kWriters * kSize);
  const Region region = must(target.add_region({.name = "all", .bytes = memory}));
  const std::string card = must(target.card());
  std::atomic<std::size_t> left{kWriters};
  const auto write = [&](std::size_t number) {
    Agent agent = must(Agent::open(with_mailslot("writer-" + std::to_string(number))));
    std::vector<std::byte> local(kSize);
    fill(local, number);
    const Region source = must(agent.add_region({.bytes = local}));
    const Peer peer = must(agent.add_peer(card));
    const Plan plan =
        must(agent.plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("all", number * kSize, kSize)}}));
    for (std::size_t i = 0; i < kTimes; ++i) must(must(plan.submit({.notify = "done"})).wait(kPatience));
    must(agent.close(std::chrono::seconds(5)));
    left.fetch_sub(1);
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kWriters; ++i) threads.emplace_back(write, i);
  std::size_t heard = 0;
  const Instant deadline = Clock::steady().now() + kPatience;
  while ((heard < kWriters * kTimes || left.load() > 0) && Clock::steady().now() < deadline) {
    target.wait(std::chrono::milliseconds(1));
    while (target.take_notification()) ++heard;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heard, kWriters * kTimes);
  for (std::size_t i = 0; i < kWriters; ++i) {
    EXPECT_TRUE(holds(std::span(memory).subspan(i * kSize, kSize), i));
  }
}

// Closing a region under fire: once it is closed nothing touches the memory.
TEST(Mailslot, AClosedRegionIsLeftAlone) {
  constexpr std::size_t kSize = 8 << 20;
  Agent target = must(Agent::open(with_mailslot("target")));
  Agent agent = must(Agent::open(with_mailslot("writer")));
  std::vector<std::byte> local(kSize, std::byte{1});
  const Region source = must(agent.add_region({.bytes = local}));
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> memory(kSize);
    Region region = must(target.add_region({.name = "r" + std::to_string(round), .bytes = memory}));
    const Peer peer = must(agent.add_peer(must(target.card())));
    const Plan plan = must(agent.plan_write(peer, {{source.range(0, kSize)}}, {{peer.range(region.name(), 0, kSize)}}));
    Transfer sent = must(plan.submit());
    std::thread writer([&] { (void)sent.wait(kPatience); });
    for (int i = 0; i < round; ++i) target.poll();
    must(region.close(kPatience));
    std::ranges::fill(memory, std::byte{2});
    writer.join();
    EXPECT_TRUE(all_are(memory, std::byte{2}));
  }
}

}  // namespace
}  // namespace hawser::conformance
