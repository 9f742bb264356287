// One queue pair of a path and its peer's, without the path.

#include "backend/verbs/path/path_pair.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "backend/verbs/path/test_pairs.h"

namespace hawser::backend::verbs {
namespace {

using PathPairTest = TwoPairs;
using State = proto::QueuePairState;

const Status kBroken = Status(Code::kDisconnected, "a cable was pulled").with_scope(Scope::kPath);

TEST_F(PathPairTest, BothEndsBecomeReadyByTheHandshake) {
  connect();
  EXPECT_EQ(a->ready, 1);
  EXPECT_EQ(b->ready, 1);
  EXPECT_EQ(active->epoch(), 1u);
  EXPECT_EQ(active->peer().number, passive->qp().number());
  EXPECT_EQ(passive->peer().number, active->qp().number());
  EXPECT_TRUE(a->said.empty() && b->said.empty());
  EXPECT_EQ(active->next_deadline(), Instant::max());
  EXPECT_TRUE(a->shared.attention) << "its port looks at its timers";
}

TEST_F(PathPairTest, AFaultIsToldAndTriedAgainWithTheNextEpoch) {
  connect();
  active->fault(kBroken, now);
  EXPECT_EQ(a->lost, 1);
  EXPECT_EQ(a->worked, 0) << "nothing was carried";
  EXPECT_EQ(active->cause().message(), "a cable was pulled");
  EXPECT_EQ(active->state(), State::kBackoff) << "nothing was posted, so nothing has to come back";
  EXPECT_TRUE(a->said.empty()) << "the peer hears of it by the next attempt";
  ASSERT_LT(active->next_deadline(), now + std::chrono::seconds(2));
  now = active->next_deadline();
  EXPECT_EQ(active->run_timers(now), 1u);
  connect(*a, *active, *b, *passive, now);
  EXPECT_EQ(active->epoch(), 2u);
  EXPECT_TRUE(active->cause().ok());
  EXPECT_EQ(b->lost, 1);
}

TEST_F(PathPairTest, TheEndThatAnswersTellsOfItsFault) {
  connect();
  passive->fault(kBroken, now);
  EXPECT_EQ(b->lost, 1);
  active->on_broken(b->take<wire::QueuePairBroken>(), now);
  EXPECT_EQ(a->lost, 1);
  EXPECT_EQ(active->cause().message(), "b says: " + kBroken.to_string());
}

TEST_F(PathPairTest, ANewConnectionIsTheFenceForWhatTheOldOneLost) {
  connect();
  active->fault(kBroken, now);
  active->lost().add({Flight()}, 1, now, std::chrono::seconds(2));
  active->hurry(now);
  passive->on_connect(a->take<wire::QueuePairConnect>(), now);
  EXPECT_EQ(a->fenced, 0u) << "the peer has not answered";
  active->on_accept(b->take<wire::QueuePairAccept>(), now);
  EXPECT_EQ(a->fenced, 1u);
}

TEST_F(PathPairTest, WhatIsNotAnsweredIsSaidAgainUntilTheTimeOfTheAttemptIsOver) {
  active->feed(proto::QueuePairEvent::kWant, now);
  const auto first = a->take<wire::QueuePairConnect>();
  now = active->next_deadline();
  active->run_timers(now);
  const auto again = a->take<wire::QueuePairConnect>();
  EXPECT_EQ(again.epoch, first.epoch);
  EXPECT_EQ(again.endpoint.number, first.endpoint.number);
  now = now + a->options.connect_timeout;
  active->run_timers(now);
  EXPECT_EQ(active->state(), State::kBackoff);
  EXPECT_EQ(a->failed, 1);
  EXPECT_EQ(active->failures(), 1u);
  EXPECT_EQ(active->why_not().code(), Code::kTimedOut);
}

TEST_F(PathPairTest, NobodyWaitsForTheNextAttemptWhenAskedToHurry) {
  active->hurry(now);
  EXPECT_TRUE(a->said.empty()) << "it does not wait";
  active->feed(proto::QueuePairEvent::kWant, now);
  a->said.clear();
  active->fault(kBroken, now);
  a->said.clear();
  ASSERT_EQ(active->state(), State::kBackoff);
  active->hurry(now);
  EXPECT_EQ(a->take<wire::QueuePairConnect>().epoch, 2u);
}

TEST_F(PathPairTest, APeerThatAsksForAttemptsIsHeardOnceInALongestPause) {
  const auto fail = [this] {
    active->fault(kBroken, now);
    a->said.clear();
    ASSERT_EQ(active->state(), State::kBackoff);
  };
  const auto ask = [this] { active->on_ready_heard({.pair = 0, .epoch = active->epoch()}, now); };
  active->feed(proto::QueuePairEvent::kWant, now);
  fail();
  ask();
  EXPECT_EQ(active->state(), State::kConnecting);
  fail();
  ask();
  EXPECT_EQ(active->state(), State::kBackoff);
  now = now + std::chrono::seconds(1);
  ask();
  EXPECT_EQ(active->state(), State::kConnecting);
}

TEST_F(PathPairTest, WordsOfADeadAttemptChangeNothing) {
  connect();
  active->on_broken({.pair = 0, .epoch = 7, .code = Code::kFailed, .reason = "late"}, now);
  EXPECT_TRUE(active->is_ready());
  EXPECT_TRUE(active->cause().ok());
  active->on_accept({.pair = 0, .epoch = 7, .endpoint = {.number = 99}}, now);
  EXPECT_NE(active->peer().number, 99u);
}

TEST_F(PathPairTest, OneThatBreaksAsSoonAsItIsReadyWearsOut) {
  active->feed(proto::QueuePairEvent::kWant, now);
  for (std::uint32_t i = 1; i <= PathPair::kTrialsMax; ++i) {
    connect(*a, *active, *b, *passive, now);
    EXPECT_FALSE(active->is_worn()) << i;
    active->fault(kBroken, now);
    active->hurry(now);
  }
  EXPECT_TRUE(active->is_worn());
}

TEST_F(PathPairTest, OfAPathThatIsDownNothingIsDone) {
  a->down = true;
  active->feed(proto::QueuePairEvent::kWant, now);
  EXPECT_TRUE(a->said.empty());
  EXPECT_EQ(active->epoch(), 0u);
}

TEST_F(PathPairTest, AQueuePairThatCannotBeMadeIsAFaultOfTheAttempt) {
  fabric.fail_always("create_qp", ENOMEM);
  active->feed(proto::QueuePairEvent::kWant, now);
  EXPECT_EQ(active->state(), State::kBackoff);
  EXPECT_FALSE(active->cause().ok());
  EXPECT_EQ(a->failed, 1);
}

TEST_F(PathPairTest, FitsThePortWhileItHasTheAddressAndThePacketsLeaveIt) {
  connect();
  NicAddress address = active->qp().nic().address();
  EXPECT_TRUE(active->fits(address));
  --address.mtu;
  EXPECT_FALSE(active->fits(address));
  ++address.mtu;
  address.gids.front().bytes[15] ^= 0xff;
  EXPECT_FALSE(active->fits(address));
}

TEST_F(PathPairTest, ClosedItResetsItsQueuePairForGood) {
  connect();
  a->down = true;
  active->close();
  EXPECT_EQ(active->state(), State::kClosed);
  EXPECT_EQ(a->resets, 1);
}

}  // namespace
}  // namespace hawser::backend::verbs
