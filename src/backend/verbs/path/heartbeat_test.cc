// How fast a peer is judged whose agent is stopped: at the pace of one that is waited for as long as something of this
// end is on its way, else at an idle one's. In virtual time.

#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

constexpr Duration kHeartbeat = std::chrono::milliseconds(250);  ///< As a Side has it.
constexpr Duration kThree = 3 * kHeartbeat;
constexpr Duration kSlack = std::chrono::milliseconds(20);

class Heartbeat : public VerbsPair {
 protected:
  Submitted write(std::uint64_t cookie) {
    const Piece piece[] = {{a->memory.data(), 0, 4096}};
    return submit(Operation::kWrite, piece, cookie);
  }
  /// `b` takes no turns, and `a` only those that it must: it sleeps until it has something to do by itself.
  Duration until_told(Duration most = std::chrono::minutes(1)) {
    const Instant stopped = now;
    for (a->collect(now); a->down.empty() && now - stopped < most; a->collect(now)) {
      now = std::max(now + std::chrono::microseconds(100), std::min(a->port->next_deadline(), stopped + most));
    }
    return now - stopped;
  }
  void expect_silent() {
    ASSERT_EQ(a->down.size(), 1u);
    const std::string text = a->down.at(0).to_string();
    EXPECT_EQ(a->down.at(0).scope(), Scope::kPeer) << text;
    EXPECT_NE(text.find("b has been silent for"), std::string::npos) << text;
  }
  /// The network is there, and all that both ends had to say is said.
  void settle() {
    run([] { return false; }, 1000);
  }
};

TEST_F(Heartbeat, AStoppedPeerIsToldInThreeWhileAChunkIsUnderWay) {
  start();
  connect();
  settle();
  fabric.hold = true;
  ASSERT_EQ(write(1).taken, 1u);
  EXPECT_LT(until_told(), kThree + kSlack) << to_b->describe();
  expect_silent();
  EXPECT_EQ(outcome(1).code(), Code::kDisconnected) << outcome(1).to_string();
  EXPECT_EQ(outcome(1).cause().code(), Code::kTimedOut) << outcome(1).to_string();  // Silence is no proof of death.
}

TEST_F(Heartbeat, ASilenceIsToldWithThePathAndTheChunkEndsWellAfterIt) {
  peer_timeout = std::chrono::seconds(5);
  start();
  connect();
  settle();
  fabric.hold = true;
  ASSERT_EQ(write(1).taken, 1u);
  until_told(std::chrono::seconds(2));
  EXPECT_EQ(a->silences, 1);
  EXPECT_TRUE(a->down.empty());
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return is_done(1) && a->heard == 1; }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_TRUE(a->down.empty());
}

TEST_F(Heartbeat, ALongSilenceBeforeTheChunkDoesNotCount) {
  start();
  connect();
  settle();
  run([] { return false; }, 50'000);  // Half a second: the next heartbeat of an idle path is far off.
  fabric.hold = true;
  ASSERT_EQ(write(1).taken, 1u);
  const Duration time = until_told();
  EXPECT_LT(time, kThree + kSlack);
  EXPECT_GE(time, kThree - kSlack) << "it had no three heartbeats to answer";
}

TEST_F(Heartbeat, AStoppedPeerIsToldInThreeWhileALostChunkWaitsForItsQueuePair) {
  options.patience = std::chrono::hours(1);
  start();
  connect();
  settle();
  fabric.hold = true;
  ASSERT_EQ(write(1).taken, 1u);
  fabric.raise("mock0", IBV_EVENT_PORT_ERR);
  EXPECT_LT(until_told(), kThree + kSlack) << to_b->describe();
  expect_silent();
}

TEST_F(Heartbeat, AStoppedPeerIsToldInThreeWhileAChunkIsHeldBackForWantOfAQueuePair) {
  options.patience = std::chrono::hours(1);
  start();
  connect();
  settle();
  fabric.raise("mock0", IBV_EVENT_PORT_ERR);
  ASSERT_TRUE(run_alone(*a, [&] { return to_b->counters().queue_pairs.at(0).state == "backoff"; }));
  ASSERT_EQ(write(1).taken, 0u);
  EXPECT_LT(until_told(), kThree + kSlack) << to_b->describe();
  expect_silent();
}

TEST_F(Heartbeat, NobodyWaitsForAPeerOnceItsChunksHaveEnded) {
  start();
  connect();
  for (std::uint64_t cookie = 1; cookie <= 3; ++cookie) {
    ASSERT_EQ(write(cookie).taken, 1u);
    ASSERT_TRUE(run([&] { return is_done(cookie); }));
  }
  settle();
  const Duration time = until_told();
  EXPECT_GT(time, 2 * kThree) << "an idle peer is asked at the pace of one that is waited for";
  EXPECT_LT(time, 13 * kHeartbeat);
  expect_silent();
}

TEST_F(Heartbeat, NobodyWaitsForAPeerOnceItsQueuePairIsThereAgain) {
  options.patience = std::chrono::hours(1);
  start();
  connect();
  fabric.raise("mock0", IBV_EVENT_PORT_ERR);
  ASSERT_TRUE(run([&] { return to_b->counters().queue_pairs.at(0).state != "ready"; }));
  ASSERT_EQ(write(1).taken, 0u);
  ASSERT_TRUE(run_slow([&] { return to_b->counters().queue_pairs.at(0).state == "ready"; }));
  settle();
  EXPECT_GT(until_told(), 2 * kThree);
}

TEST_F(Heartbeat, AStoppedPeerIsToldInThreeWhileTheAgentWaitsForIt) {
  start();
  connect();
  settle();
  to_b->set_awaited(true, now);
  EXPECT_LT(until_told(), kThree + kSlack) << to_b->describe();
  expect_silent();
}

TEST_F(Heartbeat, TheAgentThatWaitsDoesNotWakeThePathMeanwhile) {
  start();
  connect();
  settle();
  to_b->set_awaited(true, now);
  int turns = 0;
  for (const Instant end = now + kHeartbeat - kSlack; now < end; ++turns) {
    step();
    now = std::min({std::max(now, a->port->next_deadline()), std::max(now, b->port->next_deadline()), end});
  }
  EXPECT_LT(turns, 10);
}

TEST_F(Heartbeat, NobodyWaitsOnceTheAgentSaysSo) {
  start();
  connect();
  settle();
  to_b->set_awaited(true, now);
  settle();
  to_b->set_awaited(false, now);
  settle();
  EXPECT_GT(until_told(), 2 * kThree);
  expect_silent();
}

TEST_F(Heartbeat, AChunkThatEndsLeavesTheAgentWaiting) {
  start();
  connect();
  settle();
  to_b->set_awaited(true, now);
  ASSERT_EQ(write(1).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  settle();
  EXPECT_LT(until_told(), kThree + kSlack);
  expect_silent();
}

TEST_F(Heartbeat, APeerThatAnswersIsNotGivenUpHoweverLongAChunkTakes) {
  start();
  connect();
  fabric.hold = true;
  ASSERT_EQ(write(1).taken, 1u);
  const Instant from = now;
  ASSERT_TRUE(run_slow([&] { return now - from > std::chrono::seconds(10); }));
  EXPECT_TRUE(a->down.empty() && b->down.empty());
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
}

}  // namespace
}  // namespace hawser::backend::verbs
