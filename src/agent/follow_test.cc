// Transfers that begin once another one has ended (SubmitOptions::after_transfer).

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/engine.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

class Follow : public testing::Test {
 protected:
  Follow() {
    region_ = agent_.add_region({.name = "data", .bytes = std::as_writable_bytes(std::span(data_))}).value();
    words_ = agent_.add_region({.name = "words", .bytes = std::as_writable_bytes(std::span(word_))}).value();
    data_[0] = 7;
    first_ = plan_between(0, 1);
    second_ = plan_between(1, 2);
  }
  Plan plan_between(std::uint64_t from, std::uint64_t to) {
    const LocalRange source = region_.range(8 * from, 8);
    const RemoteRange target = agent_.self().range("data", 8 * to, 8);
    return agent_.plan_write(agent_.self(), {&source, 1}, {&target, 1}).value();
  }
  /// One that stays in flight until `open_gate`.
  Transfer gated(const Plan& plan) {
    const SignalWord gate{.word = words_.range(0, 8), .value = 1};
    return std::move(plan.submit({.after = &gate}).value());
  }
  void open_gate() { word_[0] = 1; }
  void turn() {
    for (int i = 0; i < 10; ++i) static_cast<void>(agent_.poll());
  }

  std::vector<std::uint64_t> data_ = std::vector<std::uint64_t>(16), word_ = std::vector<std::uint64_t>(2);
  Agent agent_ = std::move(open_with({.name = "a"}, {backend::loopback_factory()}).value());
  Region region_, words_;
  Plan first_, second_;
};

TEST_F(Follow, BeginsOnceTheOtherHasEndedWell) {
  Transfer first = gated(first_);
  Transfer second = second_.submit({.after_transfer = &first}).value();
  turn();
  EXPECT_FALSE(second.done());
  EXPECT_EQ(data_[2], 0u) << "nothing of it has moved";
  open_gate();
  ASSERT_TRUE(second.wait(10s).ok());
  EXPECT_TRUE(first.done());
  EXPECT_EQ(data_[2], 7u) << "it read what the first one had written";
}

TEST_F(Follow, TheHandleOfTheFirstMayGoOnceThatIsOver) {
  std::optional<Transfer> first(gated(first_));
  Transfer second = second_.submit({.after_transfer = &*first}).value();
  Transfer third = plan_between(2, 3).submit({.after_transfer = &second}).value();
  open_gate();
  ASSERT_TRUE(first->wait(10s).ok());
  first.reset();
  ASSERT_TRUE(third.wait(10s).ok());
  EXPECT_EQ(data_[3], 7u);
}

TEST_F(Follow, OneThatIsOverIsFollowedAtOnce) {
  ASSERT_TRUE(first_.submit().value().wait(10s).ok());
  const Transfer at_once = std::move(first_.submit().value());
  ASSERT_TRUE(at_once.done()) << "once a path is up it is only a copy, and has no slot";
  Transfer second = second_.submit({.after_transfer = &at_once}).value();
  EXPECT_TRUE(second.wait(10s).ok());
  Transfer gate = gated(first_);
  open_gate();
  ASSERT_TRUE(gate.wait(10s).ok());
  EXPECT_TRUE(plan_between(2, 3).submit({.after_transfer = &gate}).value().wait(10s).ok());
  EXPECT_EQ(data_[3], 7u);
}

TEST_F(Follow, EndsCancelledWhenTheOtherDoesNotEndWell) {
  Transfer first = gated(first_);
  Transfer second = second_.submit({.notify = "never", .after_transfer = &first}).value();
  Transfer third = plan_between(2, 3).submit({.after_transfer = &second}).value();
  first.cancel();
  for (Transfer* follower : {&second, &third}) {
    const Status told = follower->wait(10s);
    EXPECT_EQ(told.code(), Code::kCancelled) << told.to_string();
    EXPECT_EQ(told.buffer(), BufferState::kUntouched);
    EXPECT_NE(told.to_string().find("was to follow"), std::string::npos) << told.to_string();
    EXPECT_NE(told.to_string().find("the transfer was cancelled"), std::string::npos)
        << "the first cause: " << told.to_string();
  }
  open_gate();
  turn();
  EXPECT_EQ(data_[2] + data_[3], 0u);
  EXPECT_FALSE(agent_.take_notification().has_value());
}

TEST_F(Follow, OneThatHasEndedBadlyIsNotFollowed) {
  Transfer first = gated(first_);
  first.cancel();
  ASSERT_EQ(first.wait(10s).code(), Code::kCancelled);
  const Result<Transfer> second = second_.submit({.after_transfer = &first});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kCancelled) << second.error().to_string();
}

TEST_F(Follow, EndsByItsOwnDeadlineAndCancel) {
  Transfer first = gated(first_);
  Transfer late = second_.submit({.deadline = 5ms, .after_transfer = &first}).value();
  Transfer dropped = second_.submit({.after_transfer = &first}).value();
  EXPECT_EQ(late.wait(10s).code(), Code::kTimedOut);
  dropped.cancel();
  EXPECT_EQ(dropped.wait(10s).code(), Code::kCancelled);
  EXPECT_FALSE(first.done());
  open_gate();
  EXPECT_TRUE(first.wait(10s).ok());
  EXPECT_EQ(data_[2], 0u);
}

TEST_F(Follow, WaitsForItsWordToo) {
  Transfer first = gated(first_);
  const SignalWord word{.word = words_.range(8, 8), .value = 3};
  Transfer second = second_.submit({.after = &word, .after_transfer = &first}).value();
  open_gate();
  ASSERT_TRUE(first.wait(10s).ok());
  turn();
  EXPECT_FALSE(second.done());
  word_[1] = 3;
  EXPECT_TRUE(second.wait(10s).ok());
}

TEST_F(Follow, ManyMayFollowOneAndEachOther) {
  Transfer first = gated(first_);
  std::vector<Transfer> chain;
  chain.push_back(std::move(second_.submit({.after_transfer = &first}).value()));
  for (int i = 0; i < 2000; ++i) {
    Result<Transfer> next = second_.submit({.after_transfer = &chain.back()});
    ASSERT_TRUE(next) << next.error().to_string();
    chain.push_back(std::move(*next));
  }
  first.cancel();
  EXPECT_EQ(chain.back().wait(10s).code(), Code::kCancelled);
  for (const Transfer& each : chain) EXPECT_TRUE(each.done());
}

TEST_F(Follow, AreBounded) {
  Transfer first = gated(first_);
  std::vector<Transfer> held;
  while (held.size() < kHeldMax - 1) {
    held.push_back(std::move(second_.submit({.after_transfer = &first}).value()));
  }
  const Result<Transfer> over = second_.submit({.after_transfer = &first});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code(), Code::kBusy);
  held.pop_back();
  turn();
  EXPECT_TRUE(second_.submit({.after_transfer = &first}));
}

TEST_F(Follow, TheAgentClosesWithThemHeld) {
  Transfer first = gated(first_);
  Transfer second = second_.submit({.after_transfer = &first}).value();
  ASSERT_TRUE(agent_.close(10s).ok());
  EXPECT_TRUE(second.done());
  EXPECT_FALSE(second.status().ok());
}

TEST_F(Follow, AnEmptyHandleAndOneOfAnotherAgentAreRefused) {
  const Transfer empty;
  EXPECT_EQ(second_.submit({.after_transfer = &empty}).error().code(), Code::kInvalid);
  Agent other = std::move(open_with({.name = "b"}, {backend::loopback_factory()}).value());
  std::vector<std::uint64_t> memory(16);
  const Region theirs = other.add_region({.name = "data", .bytes = std::as_writable_bytes(std::span(memory))}).value();
  const LocalRange from = theirs.range(0, 8);
  const RemoteRange to = other.self().range("data", 8, 8);
  const SignalWord never{.word = theirs.range(64, 8), .value = 1};
  const Transfer its =
      std::move(other.plan_write(other.self(), {&from, 1}, {&to, 1}).value().submit({.after = &never}).value());
  const Status refused = second_.submit({.after_transfer = &its}).error();
  EXPECT_EQ(refused.code(), Code::kInvalid) << refused.to_string();
  EXPECT_NE(refused.to_string().find("another agent"), std::string::npos);
}

}  // namespace
}  // namespace hawser::agent
