#include "sim/message_judge.h"

#include <gtest/gtest.h>

#include "sim/test_lives.h"

namespace hawser::simulation {
namespace {

struct MessageJudgeTest : testing::Test, TwoLives {
  MessageJudgeTest() {
    for (Life* life : {&a, &b}) lives[life->incarnation] = life;
  }
  void send(std::uint64_t number) { judge.on_sent(a, b, kChannels[0], number); }

  MessageJudge::Lives lives;
  MessageJudge judge{{.universe = universe, .verdict = verdict, .reasons = reasons, .lives = lives}};
};

TEST_F(MessageJudgeTest, BodiesSayWhoAndWhich) {
  EXPECT_EQ(message_of(a, 16, 3, 0), "0/16/3/");
  EXPECT_EQ(message_of(a, 16, 3, 100).size(), 100u);
  EXPECT_NE(message_of(a, 16, 3, 100), message_of(b, 16, 3, 100));
}

TEST_F(MessageJudgeTest, MessagesAreNumberedOneByOne) {
  send(1);
  send(2);
  EXPECT_FALSE(verdict.failed());
  send(4);
  EXPECT_NE(verdict.failure().find("was given the number 4"), std::string::npos) << verdict.failure();
}

TEST_F(MessageJudgeTest, ItIsSettledOnceAllThatWasSentHasCome) {
  send(1);
  EXPECT_FALSE(MessageJudge::is_settled(a));
  judge.check_settled(a);
  EXPECT_NE(verdict.failure().find("1 messages were sent, 0 came"), std::string::npos) << verdict.failure();
  b.bonds[&a].received[kChannels[0]] = 1;
  EXPECT_TRUE(MessageJudge::is_settled(a));
}

TEST_F(MessageJudgeTest, WhatWasSentToOneThatIsGoneNeedNotCome) {
  send(1);
  b.alive = false;
  EXPECT_TRUE(MessageJudge::is_settled(a));
  judge.check_settled(a);
  EXPECT_FALSE(verdict.failed());
}

TEST_F(MessageJudgeTest, ANotificationComesOnceAndFromWhoSentIt) {
  a.bonds[&b].notes_sent.insert(5);
  judge.on_note(b, a, 5);
  EXPECT_FALSE(verdict.failed());
  judge.on_note(b, a, 5);
  EXPECT_NE(verdict.failure().find("came twice"), std::string::npos) << verdict.failure();
}

TEST_F(MessageJudgeTest, ANotificationThatNobodySentShows) {
  judge.on_note(b, a, 6);
  EXPECT_NE(verdict.failure().find("was not sent by agent-0"), std::string::npos) << verdict.failure();
}

}  // namespace
}  // namespace hawser::simulation
