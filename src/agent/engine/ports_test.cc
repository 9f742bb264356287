// In which order ports are turned, and what is looked at in between.

#include "agent/engine/ports.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class Heard final : public PortListener {
 public:
  void on_event(std::size_t backend, const backend::PortEvent& event, Instant) override {
    heard.emplace_back(backend, event.transfer);
  }
  std::vector<std::pair<std::size_t, std::uint64_t>> heard;
};

class PortsTest : public ::testing::Test {
 protected:
  void tell(const Hand& hand, std::uint64_t transfer) {
    backend::PortEvent event;
    event.transfer = transfer;
    hand.port->events.push_back(std::move(event));
  }
  Heard listener_;
  Ports ports_{listener_};
  Hand one_ = add_hand(ports_, "one"), two_ = add_hand(ports_, "two");
  const Instant now_ = Instant::from_ns(1'000'000'000);
};

TEST_F(PortsTest, EventsAreHeardInOrderHoweverManyThereAre) {
  for (std::uint64_t i = 0; i < 30; ++i) tell(two_, i);
  EXPECT_EQ(ports_.turn(now_, false), 30u);
  ASSERT_EQ(listener_.heard.size(), 30u);
  for (std::uint64_t i = 0; i < 30; ++i) EXPECT_EQ(listener_.heard[i], (std::pair<std::size_t, std::uint64_t>{1, i}));
}

TEST_F(PortsTest, TheOneThatHadNewsIsTurnedAloneForAWhile) {
  tell(two_, 1);
  ports_.turn(now_, false);
  const int before = one_.port->turns;
  for (int i = 0; i < 16; ++i) ports_.turn(now_, false);
  EXPECT_EQ(one_.port->turns, before) << "sixteen turns may leave the other out";
  ports_.turn(now_, false);
  EXPECT_EQ(one_.port->turns, before + 1) << "and no more";
  ports_.turn(now_ + 500ns, false);
  EXPECT_EQ(one_.port->turns, before + 2) << "nor for half a microsecond";
}

TEST_F(PortsTest, WhileSomethingIsInFlightAllAreTurned) {
  tell(two_, 1);
  ports_.turn(now_, false);
  ports_.turn(now_, true);
  EXPECT_EQ(one_.port->turns, 2);
}

TEST_F(PortsTest, WhatWasSentByAnotherMakesItsAnswerLikely) {
  tell(two_, 1);
  ports_.turn(now_, false);
  ports_.expect_answer(1);
  ports_.turn(now_, false);
  EXPECT_EQ(one_.port->turns, 1);
  ports_.expect_answer(0);
  ports_.turn(now_, false);
  EXPECT_EQ(one_.port->turns, 2);
}

TEST_F(PortsTest, AGlanceSeesNewsAndEndsAfterSoMany) {
  EXPECT_TRUE(ports_.nothing_new(now_, false));
  tell(one_, 1);
  EXPECT_FALSE(ports_.nothing_new(now_, false));
  ports_.turn(now_, false);
  int quiet = 0;
  while (ports_.nothing_new(now_, false)) ++quiet;
  EXPECT_EQ(quiet, 16);
}

TEST_F(PortsTest, SleepAndDeadlineAreThoseOfAll) {
  one_.port->deadline = now_ + 2s;
  two_.port->deadline = now_ + 1s;
  EXPECT_EQ(ports_.next_deadline(), now_ + 1s);
  EXPECT_TRUE(ports_.prepare_sleep());
  tell(one_, 1);
  EXPECT_FALSE(ports_.prepare_sleep());
}

TEST(EngineDescribes, WhatPortsWaitFor) {
  Rig rig;
  rig.second.port->its_waits = {{.who = "its", .what = "the hello", .peer = "there", .count = 2, .since = rig.now()}};
  std::vector<backend::Waiting> told;
  rig.engine.describe([&told](const backend::Waiting& each) { told.push_back(each); });
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].what, "the hello");
  EXPECT_EQ(told[0].since, rig.now());
}

}  // namespace
}  // namespace hawser::agent
