// What becomes of a region that one of the agent's backends cannot serve.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "backend/test_wrapped.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

/// A loopback in other clothes.
template <typename Wrapper>
backend::Factory wrapping(std::string_view name) {
  return backend::wrapping(name, 5, backend::loopback_factory(), [](std::unique_ptr<backend::Backend> inner) {
    return std::make_unique<Wrapper>(std::move(inner));
  });
}

/// Registers nothing, as a NIC without locked memory does.
class Refusing final : public backend::WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  Result<std::string> add_region(const backend::RegionEntry&) override {
    return Status(Code::kBusy, "no locked memory is left").with_advice("raise the limit");
  }
};

/// What happens while a backend registers a region, and which regions it has.
struct Registering {
  std::function<void()> meanwhile = [] {};
  int regions = 0;
  int most = 100;  ///< It refuses more.
} registering, late;

template <Registering* kWhat>
class Telling final : public backend::WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  Result<std::string> add_region(const backend::RegionEntry&) override {
    if (kWhat->regions == kWhat->most) return Status(Code::kBusy, "no locked memory is left");
    ++kWhat->regions;
    std::exchange(kWhat->meanwhile, [] {})();
    return std::string(kWhat == &late ? "extra of late" : "extra of telling");
  }
  void remove_region(const backend::RegionEntry&) override { --kWhat->regions; }
};

/// What a backend says of regions, and that it changes while one is being registered.
struct Renewal {
  std::function<void()> meanwhile = [] {};
  std::string said = "said before";
  bool is_news = false;
} renewal;

class RenewingPort final : public backend::WrappedPort {
 public:
  using WrappedPort::WrappedPort;
  std::size_t poll(std::span<backend::PortEvent> out) override {
    if (!std::exchange(renewal.is_news, false)) return WrappedPort::poll(out);
    out[0].kind = backend::PortEvent::Kind::kRegions;
    return 1;
  }
};

class Renewing final : public backend::WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  Result<std::string> add_region(const backend::RegionEntry&) override {
    const std::string said = renewal.said;
    std::exchange(renewal.meanwhile, [] {})();
    return said;
  }
  std::string told(const backend::RegionEntry&) const override { return renewal.said; }
  Result<std::unique_ptr<backend::Port>> open_port() override {
    auto port = WrappedBackend::open_port();
    if (!port) return port.error();
    return std::unique_ptr<backend::Port>(new RenewingPort(*std::move(port)));
  }
};

/// Comes after one that refuses, so it is never told of a region.
class NeverTold final : public backend::WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void remove_region(const backend::RegionEntry&) override { ADD_FAILURE() << "it has no such region"; }
};

backend::Factory telling() { return wrapping<Telling<&registering>>("telling"); }
backend::Factory opened_late() { return wrapping<Telling<&late>>("late"); }

backend::Factory refusing() { return wrapping<Refusing>("refusing"); }

/// Says that it reaches GPU memory, and leads to nobody.
class OfGpus final : public backend::WrappedBackend {
 public:
  explicit OfGpus(std::unique_ptr<backend::Backend> inner)
      : WrappedBackend(std::move(inner)), traits_(WrappedBackend::traits()) {
    traits_.reaches.add(DeviceKind::kCuda);
  }
  const backend::Traits& traits() const override { return traits_; }
  Status reachable(std::string_view) const override { return Status(Code::kUnsupported, "leads to nobody"); }

 private:
  backend::Traits traits_;
};

Agent open(std::vector<BackendSpec> backends, std::vector<std::string>* warnings) {
  AgentOptions options;
  options.name = "a";
  options.backends = std::move(backends);
  options.log.sink = [warnings](LogLevel, std::string_view text) { warnings->emplace_back(text); };
  return std::move(open_with(std::move(options), {backend::loopback_factory(), refusing()}).value());
}

TEST(AgentRegions, ABackendThatNobodyAskedForMayBeUnableToServeARegion) {
  std::vector<std::string> warnings;
  Agent agent = open({}, &warnings);
  std::vector<std::byte> memory(4096);
  const Result<Region> region = agent.add_region({.name = "kv", .bytes = memory});
  ASSERT_TRUE(region) << region.error().to_string();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("kv"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("refusing"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("no locked memory is left"), std::string::npos) << warnings[0];
}

TEST(AgentRegions, OneThatWasNamedMustServeEach) {
  std::vector<std::string> warnings;
  Agent agent = open({{"loopback", {}}, {"refusing", {}}}, &warnings);
  std::vector<std::byte> memory(4096);
  const Result<Region> region = agent.add_region({.name = "kv", .bytes = memory});
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code(), Code::kBusy);
  EXPECT_TRUE(agent.add_region({.name = "kv", .bytes = memory}).error().code() == Code::kBusy)
      << "the name is free again";
}

TEST(AgentRegions, SeveralAreRegisteredTogetherOrNotAtAll) {
  Agent agent = *open_with({.name = "a", .limits = {.regions = 3}}, {backend::loopback_factory()});
  std::vector<std::byte> memory(4096);
  const auto named = [&](std::string name) { return RegionOptions{.name = std::move(name), .bytes = memory}; };
  std::vector<std::shared_ptr<LocalRegion>> made;
  std::size_t wrong = 9;
  const auto add = [&](std::vector<RegionOptions> wanted) {
    return core_of(agent)->region_maker.add(wanted, &made, &wrong);
  };
  EXPECT_EQ(add({named("a"), named("b"), named("a")}).code(), Code::kInvalid);
  EXPECT_EQ(wrong, 2u);
  EXPECT_EQ(add({named("a"), {.name = "b", .bytes = {}}}).code(), Code::kInvalid);
  EXPECT_EQ(wrong, 1u);
  EXPECT_EQ(add({named("a"), named(""), named(""), named("b"), named("")}).code(), Code::kBusy);
  EXPECT_EQ(wrong, 3u) << "the first that has no place";
  EXPECT_TRUE(made.empty());
  ASSERT_TRUE(add({named("a"), named(""), named("b")}).ok()) << "names and places are free again";
  EXPECT_EQ(made.size(), 3u);
  EXPECT_NE(made[0]->entry->index, made[2]->entry->index);
  EXPECT_TRUE(agent.self().region("b"));
}

class RegisteringTest : public testing::Test {
 protected:
  void SetUp() override {
    registering = late = {};
    renewal = {};
  }
  static Agent open_telling(std::vector<backend::Factory> others = {}) {
    std::vector<backend::Factory> factories = {backend::loopback_factory(), telling()};
    std::vector<BackendSpec> named = {{"loopback", {}}, {"telling", {}}};
    for (const backend::Factory& other : others) {
      factories.push_back(other);
      if (other.name != "late") named.push_back({std::string(other.name), {}});
    }
    return std::move(open_with({.name = "a", .backends = std::move(named)}, std::move(factories)).value());
  }
  std::vector<std::byte> memory_ = std::vector<std::byte>(4096, std::byte{1});
  std::vector<std::byte> slow_ = std::vector<std::byte>(4096);
};

TEST_F(RegisteringTest, TheLaneGoesOnMeanwhile) {
  Agent agent = open_telling();
  const Region region = *agent.add_region({.name = "h", .bytes = memory_});
  bool moved = false;
  registering.meanwhile = [&] {  // With the lane's lock held this would wait for itself.
    const LocalRange from = region.range(0, 8);
    const RemoteRange to = agent.self().range("h", 64, 8);
    Transfer transfer = *agent.plan_write(agent.self(), {&from, 1}, {&to, 1})->submit();
    moved = transfer.wait(std::chrono::seconds(5)).ok();
    EXPECT_FALSE(agent.self().region("slow")) << "nobody knows it before all backends do";
    EXPECT_EQ(agent.add_region({.name = "slow", .bytes = memory_}).error().code(), Code::kInvalid)
        << "its name is taken";
    const std::uint32_t index = 1;
    EXPECT_EQ(agent.partial_card({&index, 1}).error().code(), Code::kNotFound);
  };
  ASSERT_TRUE(agent.add_region({.name = "slow", .bytes = slow_}));
  EXPECT_TRUE(moved);
}

TEST_F(RegisteringTest, ABackendThatOpensMeanwhileServesTheRegionToo) {
  Agent agent = open_telling({opened_late()});
  registering.meanwhile = [&] { EXPECT_TRUE(agent.add_backend({"late", {}}).ok()); };
  Region region = *agent.add_region({.name = "slow", .bytes = slow_});
  EXPECT_EQ(late.regions, 1);
  const std::string card = *agent.card();
  EXPECT_NE(card.find("extra of late"), std::string::npos);
  EXPECT_NE(card.find("extra of telling"), std::string::npos);
  EXPECT_TRUE(region.close(std::chrono::seconds(1)).ok());
  EXPECT_EQ(registering.regions, 0);
  EXPECT_EQ(late.regions, 0);
}

TEST_F(RegisteringTest, WhatOneRefusesIsFreedByAll) {
  Agent agent = open_telling({opened_late(), refusing(), wrapping<NeverTold>("never_told")});
  registering.meanwhile = [&] { EXPECT_TRUE(agent.add_backend({"late", {}}).ok()); };
  EXPECT_EQ(agent.add_region({.name = "slow", .bytes = slow_}).error().code(), Code::kBusy);
  EXPECT_EQ(registering.regions, 0);
  EXPECT_EQ(late.regions, 0);
  EXPECT_EQ(agent.card()->find("extra of late"), std::string::npos);
}

TEST_F(RegisteringTest, AnAgentThatClosesMeanwhileHasNoSuchRegion) {
  Agent agent = open_telling();
  registering.meanwhile = [&] { EXPECT_TRUE(agent.close(std::chrono::seconds(1)).ok()); };
  const Status refused = agent.add_region({.name = "slow", .bytes = slow_}).error();
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.to_string().find("closed"), std::string::npos) << refused.to_string();
  EXPECT_EQ(registering.regions, 0);
}

TEST_F(RegisteringTest, WhatABackendSaysAnewMeanwhileIsWhatCardsTell) {
  Agent agent = open_telling({wrapping<Renewing>("renewing")});
  const Region before = *agent.add_region({.name = "h", .bytes = memory_});
  renewal.meanwhile = [&] {
    renewal.said = "said after";
    renewal.is_news = true;
    while (renewal.is_news) static_cast<void>(agent.poll());
  };
  const Region slow = *agent.add_region({.name = "slow", .bytes = slow_});
  const std::string card = *agent.card();
  EXPECT_EQ(card.find("said before"), std::string::npos);
  EXPECT_NE(card.find("said after"), card.rfind("said after")) << "of both regions";
}

class Adding : public RegisteringTest {
 protected:
  void SetUp() override {
    RegisteringTest::SetUp();
    agent_ = open_telling({opened_late()});
    region_ = *agent_.add_region({.name = "h", .bytes = memory_});
  }
  Status add() { return agent_.add_backend({"late", {}}); }
  std::size_t extras_in_card() {
    const std::string card = *agent_.card();
    std::size_t count = 0;
    for (std::size_t at = card.find("extra of late"); at != std::string::npos; at = card.find("extra of late", at + 1))
      ++count;
    return count;
  }
  Agent agent_;
  Region region_;
};

TEST_F(Adding, TheLaneGoesOnWhileItIsToldOfRegions) {
  bool moved = false;
  late.meanwhile = [&] {  // With the lane's lock held this would wait for itself.
    const LocalRange from = region_.range(0, 8);
    const RemoteRange to = agent_.self().range("h", 64, 8);
    Transfer transfer = *agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1})->submit();
    moved = transfer.wait(std::chrono::seconds(5)).ok();
    EXPECT_FALSE(agent_.has_backend("late")) << "it is not open before it knows all regions";
  };
  ASSERT_TRUE(add().ok());
  EXPECT_TRUE(moved);
  EXPECT_EQ(extras_in_card(), 1u);
}

TEST_F(Adding, ItServesRegionsThatAreAddedMeanwhile) {
  Region other;
  late.meanwhile = [&] { other = *agent_.add_region({.name = "other", .bytes = slow_}); };
  ASSERT_TRUE(add().ok());
  EXPECT_EQ(late.regions, 2);
  EXPECT_EQ(extras_in_card(), 2u);
  EXPECT_TRUE(other.close(std::chrono::seconds(1)).ok());
  EXPECT_EQ(late.regions, 1);
}

TEST_F(Adding, ARegionStaysWhileItIsBeingRegistered) {
  late.meanwhile = [&] {
    const Status used = region_.close(std::chrono::milliseconds(5));
    EXPECT_EQ(used.code(), Code::kTimedOut);
    EXPECT_NE(used.to_string().find("a backend that is being added"), std::string::npos) << used.to_string();
  };
  ASSERT_TRUE(add().ok());
  EXPECT_EQ(extras_in_card(), 0u);
  EXPECT_TRUE(region_.close(std::chrono::seconds(1)).ok());
  EXPECT_EQ(late.regions, 0);
}

TEST_F(Adding, ARegionThatItKnowsMayBeClosedMeanwhile) {
  const Region other = *agent_.add_region({.name = "other", .bytes = slow_});
  late.meanwhile = [&] { late.meanwhile = [&] { EXPECT_TRUE(region_.close(std::chrono::seconds(1)).ok()); }; };
  ASSERT_TRUE(add().ok());
  EXPECT_EQ(late.regions, 1) << "it was told that the one is gone";
  EXPECT_EQ(extras_in_card(), 1u);
}

TEST_F(Adding, OneThatRefusesARegionGivesBackTheOthersAndMayBeAddedAgain) {
  Region other = *agent_.add_region({.name = "other", .bytes = slow_});
  late.most = 1;
  const Status refused = add();
  EXPECT_EQ(refused.code(), Code::kFailed);
  EXPECT_NE(refused.to_string().find("no locked memory"), std::string::npos) << refused.to_string();
  EXPECT_FALSE(agent_.has_backend("late"));
  EXPECT_EQ(late.regions, 0);
  EXPECT_EQ(extras_in_card(), 0u);
  late.most = 2;
  EXPECT_TRUE(add().ok());
  EXPECT_EQ(extras_in_card(), 2u);
}

TEST_F(Adding, OfTwoAtATimeOneWaitsAndIsToldThatItIsOpen) {
  Status second;
  std::thread other;
  late.meanwhile = [&] {
    std::atomic<bool> begun = false;
    other = std::thread([&] {
      begun = true;
      second = add();
    });
    while (!begun) std::this_thread::yield();
  };
  EXPECT_TRUE(add().ok());
  other.join();
  EXPECT_EQ(second.code(), Code::kInvalid);
  EXPECT_NE(second.to_string().find("open already"), std::string::npos) << second.to_string();
  EXPECT_EQ(late.regions, 1);
}

TEST_F(Adding, AnAgentThatClosesMeanwhileGetsNone) {
  late.meanwhile = [&] { EXPECT_EQ(agent_.close(std::chrono::milliseconds(5)).code(), Code::kTimedOut); };
  const Status refused = add();
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.to_string().find("closed"), std::string::npos) << refused.to_string();
  EXPECT_EQ(late.regions, 0);
  EXPECT_TRUE(agent_.close(std::chrono::seconds(1)).ok());
}

/// Memory that faults when the processor touches it, as a GPU's does.
class Untouchable {
 public:
  Untouchable() : at_(::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Untouchable() { ::munmap(at_, kSize); }
  Untouchable(const Untouchable&) = delete;
  Untouchable& operator=(const Untouchable&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), kSize}; }

 private:
  static constexpr std::size_t kSize = 65536;
  void* const at_;
};

TEST(AgentRegions, GpuMemoryNeedsABackendThatReachesIt) {
  const Untouchable gpu;
  AgentOptions options{.name = "a"};
  Agent without = *open_with(options, {backend::loopback_factory()});
  const RegionOptions wanted{.name = "g", .bytes = gpu.bytes(), .device = {DeviceKind::kCuda, 1}};
  const Status refused = without.add_region(wanted).error();
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_NE(refused.to_string().find("cuda:1"), std::string::npos) << refused.to_string();
  Agent with = *open_with(options, {backend::loopback_factory(), wrapping<OfGpus>("gpus")});
  Result<Region> region = with.add_region(wanted);
  ASSERT_TRUE(region) << region.error().to_string();
  EXPECT_EQ(region->device(), (hawser::Device{DeviceKind::kCuda, 1}));
  EXPECT_FALSE(with.read_signal(region->range(0, 8))) << "no word there is the processor's";
}

TEST(AgentRegions, NoOtherBackendTouchesGpuMemory) {
  const Untouchable gpu;
  Agent agent = *open_with({.name = "a"}, {backend::loopback_factory(), wrapping<OfGpus>("gpus")});
  std::vector<std::byte> memory(4096);
  const Region host = *agent.add_region({.name = "h", .bytes = memory});
  const Region ours = *agent.add_region({.name = "g", .bytes = gpu.bytes(), .device = {DeviceKind::kCuda, 0}});
  for (const bool from_gpu : {true, false}) {
    const LocalRange local = (from_gpu ? ours : host).range(0, 4096);
    const RemoteRange remote = agent.self().range((from_gpu ? "h" : "g"), 0, 4096);
    Plan plan = *agent.plan_write(agent.self(), {&local, 1}, {&remote, 1});
    const std::string why = agent.explain(plan);
    EXPECT_NE(why.find(from_gpu ? "does not reach local memory (cuda:0)" : "does not reach remote memory (cuda:0)"),
              std::string::npos)
        << why;
    Result<Transfer> transfer = plan.submit({.deadline = std::chrono::milliseconds(200)});
    const Status ended = transfer ? transfer->wait(std::chrono::seconds(5)) : transfer.error();
    EXPECT_EQ(ended.code(), Code::kUnsupported) << ended.to_string();
  }
}

TEST(AgentRegions, GpuMemoryBehindOtherMemoryOfAPlanIsNotTouchedEither) {
  const Untouchable gpu;
  Agent agent = *open_with({.name = "a"}, {backend::loopback_factory(), wrapping<OfGpus>("gpus")});
  std::vector<std::byte> memory(3 * 4096);
  const std::span<std::byte> bytes(memory);
  const Region host = *agent.add_region({.name = "h", .bytes = bytes.first(4096)});
  const Region one = *agent.add_region({.name = "1", .bytes = bytes.subspan(4096, 4096)});
  const Region two = *agent.add_region({.name = "2", .bytes = bytes.last(4096)});
  const Region ours = *agent.add_region({.name = "g", .bytes = gpu.bytes(), .device = {DeviceKind::kCuda, 0}});
  const LocalRange from[] = {host.range(0, 4096), ours.range(0, 4096)};
  const RemoteRange to[] = {agent.self().range("1", 0, 4096), agent.self().range("2", 0, 4096)};
  Plan plan = *agent.plan_write(agent.self(), from, to);
  Result<Transfer> transfer = plan.submit({.deadline = std::chrono::milliseconds(200)});
  const Status ended = transfer ? transfer->wait(std::chrono::seconds(5)) : transfer.error();
  EXPECT_EQ(ended.code(), Code::kUnsupported) << ended.to_string();
}

}  // namespace
}  // namespace hawser::agent
