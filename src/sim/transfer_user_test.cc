#include "sim/transfer_user.h"

#include "sim/test_users.h"

namespace hawser::simulation {
namespace {

using TransferUserTest = TwoUsersTest;

TEST_F(TransferUserTest, WhatItSubmitsEndsWell) {
  TransferUser user(theater, rng);
  for (int i = 0; i < 20; ++i) user.submit_new(a);
  EXPECT_FALSE(a.in_flight.empty());
  run(500);  // A word that is never set ends a transfer by its deadline.
  EXPECT_TRUE(a.in_flight.empty());
  EXPECT_GT(judge.transfers().good(), 0u);
}

TEST_F(TransferUserTest, AnIdleCourseIsSubmittedAgain) {
  TransferUser user(theater, rng);
  user.submit_new(a);
  run(500);
  const std::size_t before = judge.transfers().count();
  for (int i = 0; i < 50 && judge.transfers().count() == before; ++i) user.submit_again(a);
  EXPECT_GT(judge.transfers().count(), before);
  run(500);
}

TEST_F(TransferUserTest, WritesOfLateAreWrittenAgain) {
  TransferUser user(theater, rng);
  for (int i = 0; i < 10; ++i) user.submit_new(a);
  run(500);
  const std::size_t before = judge.transfers().count();
  user.write_again(a, b, Instant());
  EXPECT_GT(judge.transfers().count(), before);
  run(500);
}

TEST_F(TransferUserTest, ACancelledOneIsTheUsersOwnDoing) {
  TransferUser user(theater, rng);
  user.cancel(a);  // Nothing is under way.
  user.submit_new(a);
  ASSERT_EQ(a.in_flight.size(), 1u);
  const Move& move = *a.in_flight[0];
  user.cancel(a);
  EXPECT_TRUE(move.ended_by_us);
  run(500);
  EXPECT_TRUE(a.in_flight.empty());
}

TEST_F(TransferUserTest, PlansToALifeThatIsGoneSaySo) {
  TransferUser user(theater, rng);
  for (int i = 0; i < 5; ++i) user.submit_new(a);
  run(500);
  theater.crash(b, false);
  run(500);
  user.try_stale_plans();
}

}  // namespace
}  // namespace hawser::simulation
