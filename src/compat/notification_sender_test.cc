// An agent that sends to itself: its inbox has room or has not.

#include "compat/notification_sender.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compat/parts.h"
#include "compat/test_peers.h"

namespace hawser::compat {
namespace {

struct NotificationSenderTest : ::testing::Test {
  Status send(std::string_view text) {
    return sender.send(
        self, text,
        [this](Duration) {
          ++pauses;
          own.agent.poll();
          if (takes_meanwhile) take();
        },
        [this] { ++advances; });
  }
  void take() {
    while (auto one = own.agent.take_notification()) texts.push_back(std::move(one->text));
  }
  /// Sends until there is no room for long. How many there are then.
  std::size_t fill() {
    const std::string text(kMessageMax, 'x');
    std::size_t sent = 0;
    for (int refused = 0; refused < 100; ++refused) {
      own.agent.poll();
      for (; self.notify(text).ok(); refused = 0) ++sent;
    }
    return sent;
  }
  void take_all() {
    for (int idle = 0; idle < 100; ++idle) {
      const std::size_t before = texts.size();
      own.agent.poll();
      take();
      if (texts.size() != before) idle = 0;
    }
  }

  TestAgent own{"a"};
  Peer self = own.agent.self();
  NotificationSender sender;
  bool takes_meanwhile = false;
  int pauses = 0, advances = 0;
  std::vector<std::string> texts;
};

TEST_F(NotificationSenderTest, WhatGoesInOneIsSentAsItIs) {
  EXPECT_TRUE(send("hello").ok());
  take_all();
  EXPECT_EQ(texts, std::vector<std::string>{"hello"});
  EXPECT_EQ(pauses, 0);
}

TEST_F(NotificationSenderTest, WhatLooksLikeAPartIsWrapped) {
  const std::string text = std::string(kPartMagic) + "x";
  EXPECT_TRUE(send(text).ok());
  take_all();
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(texts[0], encode_part({.bytes = text}));
}

TEST_F(NotificationSenderTest, ALongOneGoesInPartsThatMakeItAgain) {
  const std::string text(3 * kPartBytesMax + 5, 'x');
  takes_meanwhile = true;
  EXPECT_TRUE(send(text).ok());
  take_all();
  ASSERT_EQ(texts.size(), 5u);
  AssemblyBudget budget;
  Assembler assembler(&budget);
  Assembler::Taken taken;
  for (const std::string& part : texts) taken = assembler.take(part);
  ASSERT_TRUE(taken.text.has_value());
  EXPECT_TRUE(*taken.text == text);
}

TEST_F(NotificationSenderTest, RoomIsWaitedForWhileThePeerReads) {
  const std::size_t sent = fill();
  ASSERT_GT(sent, 0u);
  takes_meanwhile = true;
  EXPECT_TRUE(send("x").ok());
  EXPECT_GT(pauses, 0);
  take_all();
  EXPECT_EQ(texts.size(), sent + 1);
}

TEST_F(NotificationSenderTest, AFullInboxIsWaitedForOnceAndThenEachCallAsksForAMoment) {
  fill();
  const std::string text(kMessageMax, 'x');
  const Instant begun = Clock::steady().now();
  EXPECT_EQ(send(text).code(), Code::kBusy);
  EXPECT_GE(Clock::steady().now() - begun, NotificationSender::kInboxPatience);
  const Instant again = Clock::steady().now();
  EXPECT_EQ(send(text).code(), Code::kBusy);
  EXPECT_LT(Clock::steady().now() - again, NotificationSender::kInboxPatience);
}

TEST_F(NotificationSenderTest, TheLongestIsTold) {
  EXPECT_TRUE(NotificationSender::check_length("gen_notif", std::string(kNotificationMax, 'x')).ok());
  EXPECT_FALSE(NotificationSender::check_length("gen_notif", std::string(kNotificationMax + 1, 'x')).ok());
}

}  // namespace
}  // namespace hawser::compat
