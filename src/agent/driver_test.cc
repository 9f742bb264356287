// What a driver keeps of agents, and agents of a driver.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/inner.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "backend/test_wrapped.h"
#include "base/inside.h"

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
    const std::weak_ptr<Core> core = core_of(agent);
    ASSERT_TRUE(agent.close(1s).ok());
    agent = Agent();
    EXPECT_TRUE(core.expired()) << "in round " << round;
  }
  EXPECT_LE(open_descriptors(), descriptors + 2);
}

/// A part with work for the thread that runs the lane.
class Errand final : public Part {
 public:
  std::size_t turn(Instant) override {
    set_next(Instant::max());
    set_jobs(true);
    return 0;
  }
  void run_jobs(Instant) override { done_ += take_jobs() ? 1 : 0; }
  void describe(const Visitor&) const override {}
  void ask() { set_next(Instant::min()); }
  int done() const { return done_.load(); }

 private:
  std::atomic<int> done_{0};
};

/// Nothing but the errand gives the lane anything to do.
Agent open_with_errand(Errand& errand) {
  Agent agent = open_with({.name = "waits", .status_page = "off"}, {backend::loopback_factory()}).value();
  core_of(agent)->lane.add_part(errand);
  return agent;
}

/// A runner without a thread: the test does what a driver would.
class NoThread final : public Runner {
 public:
  void let_go(Core&) override {}
};

// Jobs are the driver's, and until it comes nobody turns the lane. While somebody waits for long, the driver looks ever
// less often.
TEST(Driver, IsCalledForTheJobsOfALaneThatAWaiterLeads) {
  NoThread runner;
  Errand errand;
  Agent agent = open_with_errand(errand);
  Lane& lane = core_of(agent)->lane;
  const auto bell = std::make_shared<RunnerBell>(base::EventFd::open().value());
  lane.set_runner(&runner, bell);
  errand.ask();
  EXPECT_TRUE(lane.wait_until([&] { return bell->called.load(); }, Clock::steady().now() + 2s));
  EXPECT_TRUE(bell->wake.drain());
  lane.set_runner(nullptr, nullptr);
}

/// An agent that sleeps as a driver would leave it. Nothing turns it.
class LookedAt : public testing::Test {
 protected:
  LookedAt() {
    lane_.set_runner(&runner_, std::make_shared<RunnerBell>(base::EventFd::open().value()));
    lay_down();
  }
  ~LookedAt() override { lane_.set_runner(nullptr, nullptr); }
  void lay_down() {
    Instant next;
    for (int tries = 0; tries < 1000 && !lane_.arm(&next); ++tries) lane_.try_turn();
  }
  void look(bool waits) {
    (void)inner::under_lane_lightly(
        agent_, "look", [](Instant) { return inner::Need::kDriver; }, waits);
  }
  /// A call that finds at once what it would have waited for.
  void find() {
    (void)inner::under_lane_lightly(agent_, "find", [](Instant) { return inner::Need::kNothing; });
  }

  NoThread runner_;
  Errand errand_;
  Agent agent_ = open_with_errand(errand_);
  Lane& lane_ = core_of(agent_)->lane;
};

TEST_F(LookedAt, OneWhoLooksRingsOnce) {
  for (int i = 0; i < 1000; ++i) look(true);
  EXPECT_EQ(lane_.rings(), 1u) << "the driver is told that the lane is left to waiters";
  EXPECT_TRUE(lane_.is_claimed());
  for (int i = 0; i < 1000; ++i) look(false);  // Callers that do not wait ring nobody meanwhile.
  EXPECT_EQ(lane_.rings(), 1u);
}

TEST_F(LookedAt, OneWhoDoesNotWaitRingsTheDriver) {
  look(false);
  EXPECT_EQ(lane_.rings(), 1u);
  EXPECT_FALSE(lane_.is_claimed());
}

TEST_F(LookedAt, WhatNeedsNobodyRingsNobody) {
  for (int i = 0; i < 10; ++i) find();
  EXPECT_EQ(lane_.rings(), 0u);
  EXPECT_FALSE(lane_.is_claimed()) << "it is the driver's, whom doorbells wake";
}

TEST_F(LookedAt, TheDriverTakesItBackAfterALinger) {
  const Instant before = Clock::steady().now();
  look(true);
  EXPECT_TRUE(lane_.is_left_to_waiters(before)) << "the driver's clock was read before";
  EXPECT_TRUE(lane_.is_left_to_waiters(before + kLinger / 2));
  EXPECT_FALSE(lane_.is_left_to_waiters(Clock::steady().now() + kLinger));
  lay_down();
  look(false);
  EXPECT_EQ(lane_.rings(), 2u) << "it would sleep on";
}

TEST_F(LookedAt, OneWhoFoundAtOnceKeepsItLeft) {
  look(true);
  const Instant end = Clock::steady().now() + kLinger;
  for (Instant now; now < end;) {
    now = Clock::steady().now();
    find();
  }
  EXPECT_TRUE(lane_.is_left_to_waiters(end));
}

// Its doorbells stay armed: else it would sleep until its deadline.
TEST_F(LookedAt, OneWhoLeadsAndSleepsIsWokenAllTheSame) {
  lane_.disarm();
  std::atomic<bool> is_over = false;
  bool was_woken = false;
  std::thread leader(
      [&] { was_woken = lane_.wait_until([&] { return is_over.load(); }, Clock::steady().now() + 60s); });
  const Instant start = Clock::steady().now();
  while (!lane_.sleeps() && Clock::steady().now() < start + 30s) std::this_thread::yield();
  look(true);
  while (!lane_.sleeps() && Clock::steady().now() < start + 30s) std::this_thread::yield();
  const Instant asked = Clock::steady().now();
  is_over = true;
  lane_.news_from_outside();
  leader.join();
  EXPECT_TRUE(was_woken);
  EXPECT_LT(Clock::steady().now() - asked, 30s);
}

// Peers' messages come in by turns, though nobody waits for one.
TEST_F(LookedAt, ManyLooksTurnItNowAndThen) {
  look(true);
  errand_.ask();
  const Instant start = Clock::steady().now();
  int looks = 0;
  while (!lane_.has_jobs() && looks < 100'000'000) {
    look(true);
    ++looks;
  }
  EXPECT_TRUE(lane_.has_jobs()) << "no turn in " << looks << " looks";
  EXPECT_LT(Clock::steady().now() - start, 10s);
}

// One who computes does not turn it, and does not lead: the driver does, when it looks whether to take it back.
TEST(Driver, TurnsALaneThatIsLeftToOneWhoDoesNot) {
  Errand errand;
  Agent agent = open_with_errand(errand);
  Lane& lane = core_of(agent)->lane;
  Driver driver = Driver::start({.threads = 1, .spin = 1us}).value();
  ASSERT_TRUE(driver.attach(agent).ok());
  for (int i = 0; i < 5; ++i) {
    lane.lock();
    lane.note_looker(Clock::steady().now());
    lane.unlock();
    errand.ask();
    const Instant end = Clock::steady().now() + 10s;
    while (errand.done() == i && Clock::steady().now() < end) {  // It goes on looking.
      lane.lock();
      lane.note_looker(Clock::steady().now());
      lane.unlock();
      std::this_thread::yield();
    }
    EXPECT_EQ(errand.done(), i + 1);
  }
}

// Its turn finds nothing new, and the jobs are done all the same.
TEST(Driver, DoesTheJobsOfALaneThatAWaiterLeads) {
  constexpr int kJobs = 5;
  Errand errand;
  Agent agent = open_with_errand(errand);
  Lane& lane = core_of(agent)->lane;
  std::optional<Driver> driver = Driver::start({.threads = 1, .spin = 1us}).value();
  ASSERT_TRUE(driver->attach(agent).ok());
  std::atomic<bool> is_over = false;
  std::thread waiter([&] {
    while (!is_over) (void)lane.wait_until([&] { return is_over.load(); }, Clock::steady().now() + 10s);
  });
  for (int i = 0; i < kJobs; ++i) {
    const Instant quiet = Clock::steady().now() + 20ms;  // So that the driver leaves the lane to the waiter.
    while (Clock::steady().now() < quiet) std::this_thread::yield();
    errand.ask();
    lane.wake();
    const Instant end = Clock::steady().now() + 5s;
    while (errand.done() == i && Clock::steady().now() < end) std::this_thread::yield();
    EXPECT_EQ(errand.done(), i + 1);
  }
  is_over = true;
  lane.news_from_outside();
  waiter.join();
}

// The next moment of one may come between its close and its detaching: the thread must not wait for it for ever.
TEST(Driver, AgentsAreClosedInTheirSleep) {
  Driver driver = Driver::start({.threads = 1, .spin = 1us}).value();
  for (int round = 0; round < 100; ++round) {
    std::vector<Agent> agents;
    for (const std::string name : {"a", "b", "c"}) {
      AgentOptions options{.name = name, .backends = {{.name = "shm"}}, .heartbeat = 200us, .peer_timeout = 30s};
      options.driven = true;
      ASSERT_TRUE(driver.attach(agents.emplace_back(Agent::open(std::move(options)).value())).ok());
    }
    for (Agent& agent : agents) {
      for (const Agent& other : agents) {
        if (&other == &agent) continue;
        // Where the machine is slow, such heartbeats find living peers dead. That is none of this test's matter.
        (void)agent.add_peer(other.card().value()).value().connect(10s);
      }
    }
    for (Agent& agent : agents) ASSERT_TRUE(agent.close(5s).ok());
  }
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
  EXPECT_FALSE(core_of(agent)->lane.driven());
  Driver next = Driver::start().value();
  EXPECT_TRUE(next.attach(agent).ok());
}

/// Counts each visit of an agent's lane to its port.
struct CountingPort final : backend::WrappedPort {
  CountingPort(std::unique_ptr<backend::Port> inner, std::atomic<std::uint64_t>& count)
      : WrappedPort(std::move(inner)), visits(count) {}
  std::size_t turn(Instant now, const backend::TurnBudget& budget) override {
    visits.fetch_add(1, std::memory_order_relaxed);
    return WrappedPort::turn(now, budget);
  }
  bool prepare_sleep() override {
    visits.fetch_add(1, std::memory_order_relaxed);
    return WrappedPort::prepare_sleep();
  }
  std::atomic<std::uint64_t>& visits;
};

struct CountingBackend final : backend::WrappedBackend {
  CountingBackend(std::unique_ptr<backend::Backend> inner, std::atomic<std::uint64_t>& count)
      : WrappedBackend(std::move(inner)), visits(count) {}
  Result<std::unique_ptr<backend::Port>> open_port() override {
    Result<std::unique_ptr<backend::Port>> port = WrappedBackend::open_port();
    if (!port) return port.error();
    return std::unique_ptr<backend::Port>(new CountingPort(*std::move(port), visits));
  }
  std::atomic<std::uint64_t>& visits;
};

Agent open_counting(const std::string& name, std::atomic<std::uint64_t>& visits) {
  const backend::Factory inner = backend::loopback_factory();
  const auto factory = backend::wrapping("loopback", 1, inner, [&visits](std::unique_ptr<backend::Backend> opened) {
    return std::make_unique<CountingBackend>(std::move(opened), visits);
  });
  return std::move(open_with({.name = name}, {factory}).value());
}

/// One round with itself through the driver's thread.
bool talks_to_itself(Agent& agent) {
  if (!agent.self().notify("here").ok()) return false;
  const Instant limit = Clock::steady().now() + 10s;
  while (!agent.take_notification()) {
    if (Clock::steady().now() > limit) return false;
  }
  return true;
}

// What a driver does for one agent must not cost a visit of each of the others: their number squared, when all connect.
TEST(TrialsDriver, AgentsThatSleepAreNotVisitedForTheOneThatWorks) {
  constexpr std::size_t kSleepers = 200;
  constexpr int kRounds = 200;
  std::atomic<std::uint64_t> visits_of_one = 0, visits_of_sleepers = 0;
  Driver driver = Driver::start({.spin = 0us}).value();
  std::vector<Agent> sleepers;
  for (std::size_t i = 0; i < kSleepers; ++i) {
    sleepers.push_back(open_counting("sleeper " + std::to_string(i), visits_of_sleepers));
    ASSERT_TRUE(driver.attach(sleepers.back()).ok());
  }
  Agent one = open_counting("one", visits_of_one);
  ASSERT_TRUE(driver.attach(one).ok());
  for (Agent& sleeper : sleepers) ASSERT_TRUE(talks_to_itself(sleeper));
  ASSERT_TRUE(talks_to_itself(one));
  const std::uint64_t before = visits_of_sleepers.load(), mine = visits_of_one.load();
  for (int round = 0; round < kRounds; ++round) ASSERT_TRUE(talks_to_itself(one));
  EXPECT_GE(visits_of_one.load() - mine, static_cast<std::uint64_t>(kRounds));
  // Those that were still about to lie down when it began did so meanwhile.
  EXPECT_LE(visits_of_sleepers.load() - before, 4 * kSleepers);
  for (Agent& sleeper : sleepers) EXPECT_TRUE(talks_to_itself(sleeper)) << "it does not wake";
}

}  // namespace
}  // namespace hawser::agent
