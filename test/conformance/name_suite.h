#pragma once

// What agents of one name, and agents that come and go, must find of each other in a directory, whatever it is made of.
// Run it over a factory, as directory_suite.h:
//
//   INSTANTIATE_TEST_SUITE_P(File, NameTrials, testing::Values(NameFactory{"file", make_file_place}));
//
// Thread rule: the test's thread turns all agents. Time is real.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hawser/hawser.h>

#include "agent/default_backends.h"
#include "agent/open.h"

namespace hawser::conformance {

class NamePlace {
 public:
  virtual ~NamePlace() = default;
  virtual std::shared_ptr<Directory> open() = 0;
};

struct NameFactory {
  std::string name;
  std::function<std::unique_ptr<NamePlace>()> make;
};

class NameTrials : public testing::TestWithParam<NameFactory> {
 protected:
  static constexpr Duration kLong = std::chrono::seconds(60);
  static constexpr std::string_view kKey = "hawser/cards/x";

  void SetUp() override {
    place_ = GetParam().make();
    looker_ = place_->open();
  }

  AgentOptions options(const std::string& name) {
    AgentOptions options{.name = name};
    options.backends = {{"shm", {}}, {"tcp", {}}};
    options.directory = place_->open();
    return options;
  }
  /// Polled by `turn` from then on.
  Agent& open(const std::string& name) { return add(Agent::open(options(name)).value()); }
  /// With a clock of its own, in nanoseconds since 1970.
  Agent& open_by_clock(const std::string& name, std::uint64_t wall_ns) {
    AgentOptions its = options(name);
    auto backends = agent::default_backends();
    return add(
        agent::open_with(std::move(its), std::move(backends), {.pause = {}, .wall = [wall_ns] { return wall_ns; }})
            .value());
  }
  Agent& add(Agent agent) { return *agents_.emplace_back(std::make_unique<Agent>(std::move(agent))); }
  void turn() {
    for (const auto& agent : agents_) static_cast<void>(agent->poll());
  }
  bool eventually(const std::function<bool()>& done) {
    const Clock& clock = Clock::steady();
    for (const Instant end = clock.now() + kLong; clock.now() < end;) {
      turn();
      if (done()) return true;
    }
    return false;
  }
  /// Until `agent` tells that a later one has its name.
  bool await_displaced(Agent& agent, Status* cause = nullptr) {
    return eventually([&] {
      const std::optional<PeerEvent> event = agent.take_event();
      if (!event || event->kind != PeerEvent::Kind::kDisplaced) return false;
      EXPECT_TRUE(event->peer.is_self());
      if (cause != nullptr) *cause = event->cause;
      return true;
    });
  }
  /// What the key holds: the incarnation of the card there, "none", or "".
  DirectoryEvent look(std::string_view key = kKey) {
    const Ticket ticket = looker_->get(key);
    std::optional<DirectoryEvent> event;
    const Clock& clock = Clock::steady();
    const Instant end = clock.now() + kLong;
    while (!(event = looker_->poll(ticket)) && clock.now() < end) {
      static_cast<void>(looker_->run_job(clock.now(), clock.now() + std::chrono::milliseconds(5)));
    }
    return event.value_or(DirectoryEvent{.status = Status(Code::kTimedOut, "no answer")});
  }
  /// Whether a newcomer finds this one.
  bool is_found(const Agent& agent) {
    const Agent seeker = Agent::open(options("seeker")).value();
    const Result<Peer> found = const_cast<Agent&>(seeker).find_peer(agent.name(), kLong);
    return found && found->incarnation() == agent.incarnation();
  }

  std::unique_ptr<NamePlace> place_;
  std::shared_ptr<Directory> looker_;
  std::vector<std::unique_ptr<Agent>> agents_;
};

// Every rolling restart: the new process is up before the old one goes, and the old one still registers memory.
TEST_P(NameTrials, TheLaterOfTwoHasTheNameAndKeepsIt) {
  Agent& old = open("x");
  Agent& young = open("x");
  EXPECT_TRUE(is_found(young));
  std::vector<std::byte> bytes(64);
  const std::uint64_t version = look().entries.at(0).version;
  Region late = old.add_region({.name = "late", .bytes = bytes}).value();
  Status cause;
  ASSERT_TRUE(await_displaced(old, &cause));
  EXPECT_NE(cause.to_string().find(to_string(young.incarnation())), std::string::npos) << cause.to_string();
  EXPECT_EQ(look().entries.at(0).version, version);
  Region later = old.add_region({.name = "later", .bytes = bytes}).value();
  for (int i = 0; i < 100; ++i) turn();
  EXPECT_TRUE(is_found(young));
  EXPECT_TRUE(old.close(kLong).ok());
  EXPECT_EQ(look().entries.at(0).version, version);
  EXPECT_TRUE(is_found(young));
  while (const std::optional<PeerEvent> event = young.take_event()) EXPECT_NE(event->kind, PeerEvent::Kind::kDisplaced);
  EXPECT_TRUE(young.close(kLong).ok());
  EXPECT_EQ(look().status.code(), Code::kNotFound);
}

TEST_P(NameTrials, TheOneThatYieldsKeepsItsSessions) {
  Agent& old = open("x");
  Agent& user = open("user");
  Region target = old.allocate({.name = "target", .size = 4096}).value();
  Region source = user.allocate({.name = "source", .size = 4096}).value();
  const Peer peer = user.add_peer(old.card().value()).value();
  const auto send = [&] {
    Plan plan = user.plan_write(peer, std::vector<LocalRange>{source.range(0, 4096)},
                                std::vector<RemoteRange>{peer.range("target", 0, 4096)})
                    .value();
    Transfer sent = plan.submit({}).value();
    EXPECT_TRUE(eventually([&] { return sent.done(); }));
    return sent.status();
  };
  EXPECT_TRUE(send().ok());
  open("x");
  ASSERT_TRUE(await_displaced(old));
  source.bytes()[7] = std::byte{42};
  const Status status = send();
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(target.bytes()[7], std::byte{42});
  EXPECT_EQ(peer.state(), PeerState::kUp);
}

// The later one leaves first: the earlier one comes back, by creating the key.
TEST_P(NameTrials, AFreeNameGoesBackToTheOneThatYielded) {
  Agent& old = open("x");
  Agent& young = open("x");
  ASSERT_TRUE(await_displaced(old));
  EXPECT_TRUE(young.close(kLong).ok());
  EXPECT_TRUE(eventually([&] { return look().status.ok(); }));
  EXPECT_TRUE(is_found(old));
}

// Its host's clock is behind; it comes after the one whose card it finds all the same.
TEST_P(NameTrials, ASuccessorWithASlowClockIsTheLaterOne) {
  constexpr std::uint64_t kNow = 1'800'000'000'000'000'000;
  Agent& old = open_by_clock("x", kNow);
  Agent& young = open_by_clock("x", kNow - 3'600'000'000'000);
  ASSERT_TRUE(await_displaced(old));
  EXPECT_TRUE(is_found(young));
}

// Somebody empties the directory under living agents.
TEST_P(NameTrials, AVanishedCardComesBack) {
  Agent& agent = open("x");
  const Ticket erased = looker_->erase(kKey);
  EXPECT_TRUE(eventually([&] {
    static_cast<void>(looker_->run_job(Clock::steady().now(), Clock::steady().now() + std::chrono::milliseconds(5)));
    return looker_->poll(erased).has_value();
  }));
  EXPECT_TRUE(eventually([&] { return look().status.ok(); }));
  EXPECT_TRUE(is_found(agent));
}

// A card is published when its agent opens, before it has a region.
TEST_P(NameTrials, FindingWaitsForRegions) {
  Agent& there = open("x");
  Agent& here = open("here");
  EXPECT_TRUE(here.find_peer("x", kLong).has_value());
  const Result<Peer> none = here.find_peer("x", {"kv", "index"}, std::chrono::milliseconds(100));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kNotFound);
  EXPECT_NE(none.error().to_string().find("'kv', 'index'"), std::string::npos) << none.error().to_string();
  std::vector<std::byte> bytes(64);
  Region first = there.add_region({.name = "kv", .bytes = bytes}).value();
  Region second = there.add_region({.name = "index", .bytes = bytes}).value();
  for (bool is_there = false; !is_there;) {  // The one that is published must be turned.
    turn();
    const Result<Peer> found = here.find_peer("x", {"kv", "index"}, std::chrono::milliseconds(50));
    is_there = found.has_value();
    if (!found) {
      ASSERT_EQ(found.error().code(), Code::kNotFound) << found.error().to_string();
      continue;
    }
    EXPECT_EQ(found->state(), PeerState::kKnown);  // The directory told it, no session was opened for it.
    EXPECT_EQ(found->table("index", 64).size(), 1u);
  }
}

TEST_P(NameTrials, ATableWaitsForItsRegion) {
  Agent& there = open("x");
  Agent& here = open("here");
  const Peer peer = here.find_peer("x", kLong).value();
  EXPECT_EQ(peer.table("kv", 64).status().code(), Code::kNotFound);
  const RangeTable late = peer.table("kv", 64, std::chrono::milliseconds(50));
  EXPECT_EQ(late.status().code(), Code::kNotFound) << late.status().to_string();
  std::vector<std::byte> bytes(640);
  Region region = there.add_region({.name = "kv", .bytes = bytes}).value();
  RangeTable table = late;
  EXPECT_TRUE(eventually([&] { return (table = peer.table("kv", 64, std::chrono::milliseconds(50))).status().ok(); }));
  EXPECT_EQ(table.size(), 10u);
  EXPECT_EQ(peer.state(), PeerState::kKnown);
}

// Whoever waits for regions of a peer that restarts meanwhile gets its successor.
TEST_P(NameTrials, ARestartWhileRegionsAreAwaitedIsFollowed) {
  Agent& first = open("x");
  Agent& here = open("here");
  EXPECT_TRUE(here.find_peer("x", kLong).has_value());
  EXPECT_TRUE(first.close(kLong).ok());
  Agent& second = open("x");
  Region region = second.allocate({.name = "kv", .size = 64}).value();
  for (int i = 0; i < 100; ++i) turn();
  Result<Peer> found = Status(Code::kTimedOut, "not yet");
  EXPECT_TRUE(eventually([&] {
    return (found = here.find_peer("x", {"kv"}, std::chrono::milliseconds(50))).has_value();
  })) << found.status().to_string();
  EXPECT_EQ(found->incarnation(), second.incarnation());
}

}  // namespace hawser::conformance
