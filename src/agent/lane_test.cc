// What wakes the one who sleeps, and what becomes of submissions that are left to the lane's holder.

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "backend/test_wrapped.h"
#include "base/inside.h"
#include "base/spin_credit.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

/// What is done, once, in a port's turn, while the lane is held.
std::function<void()> in_turn;

class BusyPort final : public backend::WrappedPort {
 public:
  using WrappedPort::WrappedPort;
  std::size_t turn(Instant now, const backend::TurnBudget& budget) override {
    if (const auto todo = std::exchange(in_turn, nullptr)) todo();
    return WrappedPort::turn(now, budget);
  }
};

class Busy final : public backend::WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  Result<std::unique_ptr<backend::Port>> open_port() override {
    auto port = WrappedBackend::open_port();
    if (!port) return port.error();
    return std::unique_ptr<backend::Port>(new BusyPort(*std::move(port)));
  }
};

backend::Factory busy() {
  return backend::wrapping("busy", 5, backend::loopback_factory(), [](std::unique_ptr<backend::Backend> inner) {
    return std::make_unique<Busy>(std::move(inner));
  });
}

bool is_readable(int fd, int wait_ms = 0) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, wait_ms) == 1;
}

/// One whose hours are others than the host's.
class FarAhead final : public Clock {
 public:
  Instant now() const override { return Clock::steady().now() + 1h; }
};

class Sleeping : public testing::Test {
 protected:
  static constexpr int kPatienceMs = 20'000;

  Sleeping() {
    in_turn = nullptr;
    prepare();
  }
  void prepare() {
    region_ = agent_.add_region({.name = "data", .bytes = std::as_writable_bytes(std::span(data_))}).value();
    const LocalRange from = region_.range(0, 64);
    const RemoteRange to = agent_.self().range("data", 64, 64);
    plan_ = agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1}).value();
    EXPECT_TRUE(plan_.submit().value().wait(10s).ok());
  }
  /// Nothing is to be done, and the descriptor tells of what comes.
  int armed() {
    const int fd = agent_.event_fd();
    while (is_readable(fd)) static_cast<void>(agent_.poll());
    return fd;
  }
  /// One that nothing but its deadline ends.
  Transfer submit_held() {
    const SignalWord never{.word = region_.range(0, 8), .value = 1};
    return plan_.submit({.deadline = 5ms, .after = &never}).value();
  }
  void expect_end(Transfer& held, int fd) {
    while (!held.done()) {
      ASSERT_TRUE(is_readable(fd, kPatienceMs)) << "nothing tells that its deadline is over";
      static_cast<void>(agent_.poll());
    }
    EXPECT_EQ(held.status().code(), Code::kTimedOut);
  }

  std::vector<std::uint64_t> data_ = std::vector<std::uint64_t>(16);
  Agent agent_ = std::move(open_with({.name = "a", .peer_timeout = 100s}, {busy()}).value());
  Region region_;
  Plan plan_;
};

TEST_F(Sleeping, TheDescriptorTellsOfWhatIsLeftInTheTurnThatArmsIt) {
  const int fd = armed();
  Transfer left;
  in_turn = [&] { std::thread([&] { left = plan_.submit().value(); }).join(); };
  EXPECT_EQ(agent_.poll(), 0u);
  EXPECT_FALSE(left.done());
  EXPECT_TRUE(is_readable(fd)) << "a submission waits for a turn";
  while (is_readable(fd)) static_cast<void>(agent_.poll());
  EXPECT_TRUE(left.done());
}

TEST_F(Sleeping, TheDescriptorTellsOfDeadlinesAfterSomebodyWaited) {
  const int fd = armed();
  EXPECT_FALSE(agent_.wait(1ms));
  Transfer held = submit_held();
  expect_end(held, fd);
}

TEST_F(Sleeping, TheDescriptorTellsOfDeadlinesAfterADriverLeft) {
  const int fd = armed();
  Driver driver = Driver::start().value();
  ASSERT_TRUE(driver.attach(agent_).ok());
  ASSERT_TRUE(driver.detach(agent_).ok());
  Transfer held = submit_held();
  expect_end(held, fd);
}

TEST_F(Sleeping, TheDescriptorTellsOfDeadlinesAfterADriverEnded) {
  const int fd = armed();
  std::optional<Driver> driver = Driver::start().value();
  ASSERT_TRUE(driver->attach(agent_).ok());
  driver.reset();
  Transfer held = submit_held();
  expect_end(held, fd);
}

TEST_F(Sleeping, TheDescriptorTellsOfDeadlinesByTheAgentsOwnClock) {
  agent_ = std::move(
      open_with({.name = "a", .peer_timeout = 100s, .clock = std::make_shared<FarAhead>()}, {busy()}).value());
  prepare();
  const int fd = armed();
  Transfer held = submit_held();
  expect_end(held, fd);
}

TEST_F(Sleeping, WhatIsLeftToALaneThatClosesEndsWithoutAWait) {
  constexpr std::size_t kCount = 1000;  // More than a few turns take in.
  std::vector<Transfer> left;
  CompletionQueue queue = agent_.make_queue(kCount).value();
  core_of(agent_)->lane.lock();
  std::thread([&] {
    for (std::size_t i = 0; i < kCount; ++i) left.push_back(plan_.submit({.queue = &queue}).value());
  }).join();
  core_of(agent_)->lane.unlock();
  ASSERT_TRUE(agent_.close(10s).ok());
  for (const Transfer& each : left) {
    ASSERT_TRUE(each.done());
    EXPECT_EQ(each.status().code(), Code::kCancelled) << each.status().to_string();
  }
  std::vector<Completion> ends(2 * kCount);
  ends.resize(queue.poll(ends));
  EXPECT_EQ(std::ranges::count(ends, CompletionKind::kTransfer, &Completion::kind), kCount);
  left.clear();
  plan_ = Plan();
  region_ = Region();
  const std::weak_ptr<Core> core = core_of(agent_);
  agent_ = Agent();
  EXPECT_TRUE(core.expired()) << "a submission that nobody took holds it";
}

/// One that passes as the test says, and by nothing else.
class StandingClock final : public Clock {
 public:
  Instant now() const override { return Instant::from_ns(ns_.load()); }
  void pass(Duration by) { ns_ += by.count(); }

 private:
  std::atomic<std::int64_t> ns_{Duration(1h).count()};
};

class Looking : public testing::Test {
 protected:
  Looking() { in_turn = nullptr; }

  Lane& lane() { return core_of(agent_)->lane; }
  /// What was earned, up to `most`.
  Duration credit(Duration most) {
    for (Duration lost = Duration::zero(); lost < most; lost += base::SpinCredit::kLoss) {
      lane().spins().lost(base::SpinCredit::kLoss, clock_->now());
      if (!lane().spins().may_spin(Instant::min())) return lost;
    }
    return most;
  }

  const std::shared_ptr<StandingClock> clock_ = std::make_shared<StandingClock>();
  Agent agent_ = std::move(open_with({.name = "a", .clock = clock_}, {busy()}).value());
};

TEST_F(Looking, AWaitThatEndsMeanwhileEarnsWhatASleepWouldHaveCost) {
  constexpr int kWaits = 400;
  for (int wait = 0; wait < kWaits; ++wait) {
    int looks = 0;
    ASSERT_TRUE(lane().wait_until([&] { return ++looks >= 5; }, Instant::max()));
  }
  EXPECT_EQ(credit(1s), kWaits * base::SpinCredit::kEarned);
}

TEST_F(Looking, ATurnThatFindsNothingAndTakesLongIsALoss) {
  for (int i = 0; i < 1000; ++i) lane().spins().found();
  in_turn = [&] { clock_->pass(4ms); };
  int looks = 0;
  ASSERT_TRUE(lane().wait_until([&] { return ++looks >= 5; }, clock_->now() + 4ms));
  EXPECT_EQ(credit(1s), base::SpinCredit::kMost - 4ms) << "and the wait earned nothing";
}

TEST_F(Looking, AWaiterWhoseCoreOthersWantSleepsAtOnce) {
  lane().spins().lost(1s, clock_->now());
  const Instant end = Clock::steady().now() + 5ms;
  int looks = 0;
  const auto reached = [&] {
    ++looks;
    return Clock::steady().now() >= end;
  };
  const std::uint64_t before = lane().armings();
  ASSERT_TRUE(lane().wait_until(reached, clock_->now() + 5ms));
  EXPECT_GE(lane().armings(), before + 1);
  EXPECT_LE(looks, 8) << "it looked for news";
}

}  // namespace
}  // namespace hawser::agent
