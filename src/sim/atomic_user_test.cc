#include "sim/atomic_user.h"

#include <algorithm>

#include "sim/test_users.h"

namespace hawser::simulation {
namespace {

using AtomicUserTest = TwoUsersTest;

TEST_F(AtomicUserTest, WhatItAsksForTakesPlaceOrIsRefused) {
  AtomicUser user(theater, rng);
  for (int i = 0; i < 30; ++i) user.ask(a);
  EXPECT_FALSE(a.atomics.empty());
  run(500);
  EXPECT_TRUE(a.atomics.empty());
  EXPECT_GT(judge.atomics().good(), 0u);
}

TEST_F(AtomicUserTest, ACancelledOneIsTheUsersOwnDoing) {
  AtomicUser user(theater, rng);
  user.cancel(a);
  for (int i = 0; i < 10; ++i) user.ask(a);
  ASSERT_FALSE(a.atomics.empty());
  for (int i = 0; i < 20; ++i) user.cancel(a);
  EXPECT_TRUE(std::ranges::any_of(a.atomics, [](const AtomicCall* call) { return call->ended_by_us; }));
  run(500);
}

}  // namespace
}  // namespace hawser::simulation
