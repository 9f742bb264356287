// The agents' messages between two ports: both carriers, credits, breaks.

#include "backend/verbs/queues/messages.h"

#include <gtest/gtest.h>

#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

TEST_F(VerbsPair, SmallMessagesGoByTheQueuePairAndLargeOnesByTheControlStreamInOrder) {
  start();
  connect();
  const std::string large(Messages::kSlotBytes, 'L');
  ASSERT_TRUE(say(to_b, "one"));
  ASSERT_TRUE(say(to_b, large));
  ASSERT_TRUE(say(to_b, "three"));
  ASSERT_TRUE(run([&] { return b->messages.size() == 3; }));
  EXPECT_EQ(b->messages, (std::vector<std::string>{"one", large, "three"}));
  EXPECT_EQ(by_queue_pair(to_b), 2u);
}

TEST_F(VerbsPair, WhatPassesOnTheControlStreamWaitsForWhatTheQueuePairStillCarries) {
  start();
  connect();
  fabric.hold = true;
  const std::string large(5000, 'L');
  ASSERT_TRUE(say(to_b, "first"));
  for (std::size_t i = 0; i < Messages::kAheadMax; ++i) ASSERT_TRUE(say(to_b, large + std::to_string(i)));
  EXPECT_FALSE(say(to_b, large)) << "what the peer must keep is bounded";
  for (int i = 0; i < 100; ++i) step();
  EXPECT_TRUE(b->messages.empty());
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return b->messages.size() == 1 + Messages::kAheadMax; }));
  EXPECT_EQ(b->messages[0], "first");
  EXPECT_EQ(b->messages.back(), large + "3");
  ASSERT_TRUE(run([&] { return say(to_b, large); })) << "the peer's word makes room";
}

TEST_F(VerbsPair, NoSendMeetsAnEmptyReceiveQueueWhateverIsSent) {
  options.pair.messages = 4;
  options.pair.rnr_retries = 0;
  start();
  connect();
  exchange(2000, 64, [](base::Rng&) {});
  EXPECT_GT(by_queue_pair(to_b), 500u);
  EXPECT_EQ(to_b->counters().epochs, 1u) << "a receiver that is not ready breaks the queue pair";
}

TEST_F(VerbsPair, WithoutCreditsTheControlStreamServesForAWhileAndThenTheSenderWaits) {
  options.pair.messages = 4;
  start();
  connect();
  std::size_t taken = 0;
  while (taken < 100 && say(to_b, std::to_string(taken))) ++taken;
  EXPECT_EQ(taken, 4 + Messages::kAheadMax) << "`b` takes no turn";
  EXPECT_EQ(by_queue_pair(to_b), 4u);
  ASSERT_TRUE(run([&] { return b->messages.size() == taken; }));
  for (std::size_t i = 0; i < taken; ++i) EXPECT_EQ(b->messages[i], std::to_string(i));
  ASSERT_TRUE(run([&] { return say(to_b, "more"); }));
}

TEST_F(VerbsPair, MessagesOfABrokenQueuePairAreSentAgainOnceAndInOrder) {
  start();
  connect();
  fabric.hold = true;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(say(to_b, std::to_string(i)));
  fabric.deliver(3);
  for (const std::uint32_t number : fabric.qp_numbers()) fabric.break_qp(number);
  fabric.hold = false;
  ASSERT_TRUE(run_slow([&] { return b->messages.size() == 10; })) << b->messages.size();
  run_slow([&] { return to_b->counters().epochs == 2 && by_queue_pair(to_b) > 10; }, kStep, 2000);
  ASSERT_TRUE(run_slow([&] { return say(to_b, "10"); }));
  ASSERT_TRUE(run_slow([&] { return b->messages.size() == 11; }));
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(b->messages[i], std::to_string(i));
  EXPECT_TRUE(a->down.empty());
}

TEST_F(VerbsPair, MessagesSurviveManyBreaksOnBothCarriers) {
  for (const std::uint32_t slots : {1u, 3u, 32u}) {
    options.pair.messages = slots;
    a.reset();
    b.reset();
    start();
    ASSERT_NO_FATAL_FAILURE(connect());
    int breaks = 0;
    exchange(600, 3000, [&](base::Rng& rng) {
      if (rng.chance(0.02)) fabric.hold = !fabric.hold;
      if (!fabric.hold) fabric.deliver();
      const auto numbers = fabric.qp_numbers();
      if (breaks == 20 || numbers.empty() || !rng.chance(0.02)) return;
      fabric.break_qp(numbers[rng.below(numbers.size())]);
      ++breaks;
      fabric.hold = false;
    });
    EXPECT_GT(breaks, 3) << slots;
    fabric.hold = false;
  }
}

TEST_F(VerbsPair, WhileTheQueuePairIsDownMessagesGoByTheControlStream) {
  options.patience = std::chrono::seconds(60);
  start();
  connect();
  fabric.set_link("mock1", false);
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  ASSERT_TRUE(say(to_b, "lost on its way"));
  ASSERT_TRUE(run_slow([&] {
    fabric.expire();
    return !b->messages.empty();
  }));
  ASSERT_TRUE(say(to_b, "by the control stream"));
  ASSERT_TRUE(run_slow([&] { return b->messages.size() == 2; }));
  EXPECT_EQ(b->messages[0], "lost on its way");
  EXPECT_EQ(by_queue_pair(to_b), 1u);
  fabric.set_link("mock1", true);
  ASSERT_TRUE(run_slow([&] {
    fabric.expire();
    return is_done(1);
  }));
}

TEST_F(VerbsPair, AFailedPostOfAMessageOrAReceiveLosesNothing) {
  for (const char* call : {"post_send", "post_recv"}) {
    a.reset();
    b.reset();
    start();
    ASSERT_NO_FATAL_FAILURE(connect());
    int failures = 0;
    exchange(600, 100, [&](base::Rng& rng) {
      if (failures == 5 || !rng.chance(0.05)) return;
      fabric.fail(call, ENOMEM, 1);
      ++failures;
    });
    fabric.fail_no_more();
    EXPECT_EQ(failures, 5) << call;
  }
}

TEST_F(VerbsPair, APeerWithoutReceivesGetsItsMessagesAsEver) {
  a = std::make_unique<Side>(fabric, network, "a", std::vector<std::string>{"mock0"}, options, 11);
  VerbsOptions off;
  off.pair.messages = 0;
  b = std::make_unique<Side>(fabric, network, "b", std::vector<std::string>{"mock1"}, off, 22);
  connect();
  exchange(100, 3000, [](base::Rng&) {});
  EXPECT_EQ(by_queue_pair(to_b), 0u);
}

TEST_F(VerbsPair, WhereMessagesCannotBeRegisteredTheControlStreamCarriesThem) {
  start();
  fabric.fail("reg_mr", ENOMEM, 1);
  connect();
  exchange(20, 100, [](base::Rng&) {});
  EXPECT_EQ(by_queue_pair(to_b), 0u);
}

TEST_F(VerbsPair, AMessageWakesAPortThatSleeps) {
  start();
  connect();
  ASSERT_TRUE(run([&] { return b->port->prepare_sleep(); }));
  ASSERT_TRUE(say(to_b, "wake"));
  EXPECT_EQ(by_queue_pair(to_b), 1u);
  EXPECT_FALSE(b->port->prepare_sleep()) << "there is a completion";
  b->collect(now);
  EXPECT_EQ(b->messages.size(), 1u);
}

// Memory that is freed and still written to shows with AddressSanitizer.
TEST_F(VerbsPair, WhatADeviceDoesNotLetGoOfMayComeLate) {
  start();
  connect();
  fabric.hold = true;
  ASSERT_TRUE(say(to_b, "late"));
  ASSERT_GT(fabric.held(), 0u);
  for (const char* call : {"destroy_qp", "modify_qp", "dereg_mr"}) fabric.fail_always(call, EBUSY);
  b->port->release_path(b->up);
  fabric.hold = false;
  EXPECT_GT(fabric.deliver(), 0u);
  fabric.fail_no_more();
  ASSERT_TRUE(run_slow([&] { return !a->down.empty(); }));
  EXPECT_TRUE(b->messages.empty());
}

TEST_F(VerbsPair, APathThatIsDroppedWithMessagesUnderWayLeavesNothingBehind) {
  start();
  connect();
  fabric.hold = true;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(say(to_b, std::to_string(i)));
  a->port->release_path(to_b);
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run_slow([&] { return !b->down.empty(); }));
  b->port->release_path(b->up);
  EXPECT_EQ(fabric.counts.qps, 0);
}

}  // namespace
}  // namespace hawser::backend::verbs
