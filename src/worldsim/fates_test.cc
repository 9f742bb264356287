#include "worldsim/fates.h"

#include "worldsim/test_court.h"

namespace hawser::worldsim {
namespace {

class FatesTest : public testing::Test, protected TestCourt {};

TEST_F(FatesTest, WhoIsGoneIsLostToAll) {
  Deed& send = deed(0, DeedKind::kSend);
  EXPECT_TRUE(fates.all_live(realm));
  EXPECT_FALSE(fates.has_gone(realm));
  gone(1);
  EXPECT_TRUE(fates.is_gone(1));
  EXPECT_TRUE(fates.has_gone(realm));
  EXPECT_TRUE(fates.is_lost(send, 1));
  EXPECT_FALSE(fates.is_lost(send, 2));
  EXPECT_TRUE(fates.has_lost(send, "rank-1"));
  EXPECT_FALSE(fates.has_lost(send, "rank-2"));
  EXPECT_FALSE(fates.has_lost(send, "nobody"));
  EXPECT_TRUE(realm.doomed && realm.bereft);
}

TEST_F(FatesTest, WhatHappensInAnotherWorldOfTheSameAgentsExcusesNothing) {
  all[2]->world = 1;
  const Realm& other = realms.open({2}, 6);
  gone(0);
  EXPECT_FALSE(fates.all_live(realm));
  EXPECT_TRUE(fates.all_live(other));
  gone(2);
  EXPECT_FALSE(fates.all_live(other));
}

TEST_F(FatesTest, WhoLeftLives) {
  fates.on_left(*all[2]);
  EXPECT_TRUE(fates.has_left(realm));
  EXPECT_TRUE(fates.has_left_alive(realm));
  EXPECT_TRUE(realm.disturbances.contains(Code::kCancelled));
  EXPECT_TRUE(fates.is_lost(deed(0, DeedKind::kSend), 2));
  EXPECT_FALSE(realm.doomed) << "it ends nothing of the others";
  gone(2);
  EXPECT_FALSE(fates.has_left_alive(realm));
}

TEST_F(FatesTest, OfTwoThatLoseEachOtherTheHigherOneFails) {
  fates.on_parted(*all[2], *all[0]);
  EXPECT_TRUE(fates.is_gone(2));
  EXPECT_FALSE(fates.is_gone(0));
  ASSERT_TRUE(fates.parting());
  EXPECT_FALSE(fates.accuses());
  fates.may_accuse();
  EXPECT_TRUE(fates.accuses());
}

}  // namespace
}  // namespace hawser::worldsim
