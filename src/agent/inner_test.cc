// What begins in the lane: at once, or left to the driver where another thread holds the lane.

#include "agent/inner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;
using inner::Need;

/// Notes in which order calls began, and where.
class BeginInLane : public testing::Test {
 protected:
  struct Began {
    int number = 0;
    bool is_here = false;  ///< By the thread that called.
    Status refused;
  };

  Driver driven() {
    Driver driver = std::move(Driver::start().value());
    EXPECT_TRUE(driver.attach(agent_).ok());
    return driver;
  }
  Status begin(int number) {
    const auto call = [this, number](Instant) {
      note(number, true, {});
      return Need::kTurn;
    };
    const auto later = [this, number]() -> Beginning {
      return [this, number](Instant, const Status& refused) { note(number, false, refused); };
    };
    return inner::begin_in_lane(agent_, "test", call, later);
  }
  void note(int number, bool is_here, const Status& refused) {
    const std::lock_guard lock(mutex_);
    began_.push_back({number, is_here, refused});
  }
  std::vector<int> numbers() {
    const std::lock_guard lock(mutex_);
    std::vector<int> all;
    for (const Began& each : began_) all.push_back(each.number);
    return all;
  }
  std::vector<Began> began() {
    const std::lock_guard lock(mutex_);
    return began_;
  }
  bool await(std::size_t count) {
    return inner::wait_until(
        agent_, [&] { return began().size() >= count; }, Clock::steady().now() + 20s);
  }
  /// Has a thread hold the lane's lock while this one does `todo`.
  template <typename Todo>
  void while_held(Todo todo) {
    std::promise<void> held, done;
    std::thread holder([&] {
      core_of(agent_)->lane.lock();
      held.set_value();
      done.get_future().wait();
      core_of(agent_)->lane.unlock();
    });
    held.get_future().wait();
    todo();
    done.set_value();
    holder.join();
  }

  std::mutex mutex_;
  std::vector<Began> began_;
  // It ends before what it writes into: it may run what was left to it while it closes.
  Agent agent_ = std::move(open_with({.name = "a"}, {backend::loopback_factory()}).value());
};

TEST_F(BeginInLane, ItIsDoneAtOnceWhereTheLaneIsFree) {
  ASSERT_TRUE(begin(1).ok());
  ASSERT_EQ(began().size(), 1U);
  EXPECT_TRUE(began()[0].is_here);
}

TEST_F(BeginInLane, TheDriverDoesItWhereAnotherThreadHoldsTheLane) {
  Driver driver = driven();
  while_held([&] {
    ASSERT_TRUE(begin(1).ok());
    ASSERT_TRUE(begin(2).ok());
    EXPECT_TRUE(began().empty()) << "somebody else holds the lane";
  });
  ASSERT_TRUE(await(2));
  EXPECT_EQ(numbers(), (std::vector{1, 2}));
  EXPECT_FALSE(began()[0].is_here);
  EXPECT_TRUE(began()[0].refused.ok());
}

TEST_F(BeginInLane, WhatWasLeftGoesBeforeWhatFollows) {
  Driver driver = driven();
  while_held([&] { ASSERT_TRUE(begin(1).ok()); });
  ASSERT_TRUE(inner::under_lane(agent_, "test", [&](Instant) { note(2, true, {}); }).ok());
  EXPECT_EQ(numbers(), (std::vector{1, 2}));
}

TEST_F(BeginInLane, WithoutADriverTheCallerWaitsForTheLane) {
  std::thread caller;
  while_held([&] {
    caller = std::thread([&] { EXPECT_TRUE(begin(1).ok()); });
    // It waits for the lock, or is about to: it leaves nothing, however long that takes.
    EXPECT_TRUE(began().empty());
  });
  caller.join();
  ASSERT_EQ(began().size(), 1U);
  EXPECT_TRUE(began()[0].is_here);
}

TEST_F(BeginInLane, OneMoreThanMayBeLeftWaitsForTheLane) {
  Driver driver = driven();
  constexpr int kMax = static_cast<int>(kLeftOverMax);
  std::thread caller;
  while_held([&] {
    for (int i = 1; i <= kMax; ++i) ASSERT_TRUE(begin(i).ok());
    EXPECT_FALSE(core_of(agent_)->lane.leave({.kind = LeftOver::Kind::kBeginning}));
    caller = std::thread([&] { EXPECT_TRUE(begin(kMax + 1).ok()); });
  });
  caller.join();
  ASSERT_TRUE(await(kLeftOverMax + 1));
  const std::vector<Began> all = began();
  for (int i = 0; i <= kMax; ++i) EXPECT_EQ(all[i].number, i + 1);
  EXPECT_FALSE(all[kMax - 1].is_here);
}

TEST_F(BeginInLane, WhatIsLeftToAnAgentThatIsClosedIsRefused) {
  Driver driver = driven();
  const std::shared_ptr<Core> core = core_of(agent_);
  Status closed;
  std::thread closer;
  while_held([&] {
    ASSERT_TRUE(begin(1).ok());
    closer = std::thread([&] { closed = agent_.close(10s); });
  });
  closer.join();
  ASSERT_TRUE(closed.ok()) << closed.to_string();
  ASSERT_EQ(began().size(), 1U);
  EXPECT_TRUE(began()[0].refused.ok()) << "it was left before the agent closed";

  // The next one was checked before the agent closed, and is left afterwards.
  core->lane.lock();
  EXPECT_TRUE(core->lane.leave({.kind = LeftOver::Kind::kBeginning,
                                .begin = [this](Instant, const Status& refused) { note(2, false, refused); }}));
  core->refuse_what_is_left();
  core->lane.unlock();
  ASSERT_EQ(began().size(), 2U);
  EXPECT_EQ(began()[1].refused.code(), Code::kInvalid) << began()[1].refused.to_string();
  EXPECT_FALSE(begin(3).ok());
  EXPECT_EQ(began().size(), 2U);
}

}  // namespace
}  // namespace hawser::agent
