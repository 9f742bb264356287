#include "proto/notify_credit.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"

namespace hawser::proto {
namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;
constexpr std::uint64_t kFirst = kNotificationCostMax;
constexpr std::uint64_t kWindow = std::uint64_t{256} << 10;

/// A peer that sends as long as it may. Returns how many went.
int send_all(CreditSender& sender, NotifyReceiver& receiver, std::size_t bytes, std::uint64_t room, int most) {
  int sent = 0;
  while (sent < most && sender.try_take(notification_cost(bytes))) {
    EXPECT_TRUE(receiver.on_receive(bytes));
    if (receiver.credit_due(room)) sender.on_credit(receiver.take_limits(room));
    ++sent;
  }
  return sent;
}

CreditSender first_sender() { return CreditSender({wire::kNoMessageLimit, kFirst}); }

TEST(NotifyReceiver, TakesWhatNobodyReadsUntilTheShareIsFull) {
  constexpr std::uint64_t kShare = 10u << 20;
  NotifyReceiver receiver({.share = kShare});
  CreditSender sender = first_sender();
  const int sent = send_all(sender, receiver, 16, kPlenty, 1'000'000);
  EXPECT_EQ(sent, static_cast<int>(kShare / 80));
  EXPECT_EQ(receiver.held(), kShare / 80 * 80);
  EXPECT_FALSE(receiver.credit_due(kPlenty));
}

TEST(NotifyReceiver, AFullShareIsGivenAgainAsItIsRead) {
  NotifyReceiver receiver({.share = 2 * kFirst});
  CreditSender sender = first_sender();
  ASSERT_EQ(send_all(sender, receiver, kMessageMax, kPlenty, 10), 2);
  receiver.on_release(1, kMessageMax);
  ASSERT_TRUE(receiver.credit_due(kPlenty));
  sender.on_credit(receiver.take_limits(kPlenty));
  EXPECT_EQ(send_all(sender, receiver, kMessageMax, kPlenty, 10), 1);
}

TEST(NotifyReceiver, APeerThatOverdrawsIsFound) {
  NotifyReceiver receiver({.share = 1u << 20});
  EXPECT_TRUE(receiver.on_receive(kMessageMax));
  EXPECT_FALSE(receiver.on_receive(0));
  EXPECT_EQ(receiver.waiting_messages(), 1U);
}

TEST(NotifyReceiver, WithoutRoomForAllOnlyTheFirstBytesAreGranted) {
  NotifyReceiver receiver({.share = 10u << 20});
  CreditSender sender = first_sender();
  EXPECT_EQ(send_all(sender, receiver, kMessageMax, 0, 10), 1);
  EXPECT_EQ(receiver.take_limits(0).bytes, kFirst);
  receiver.on_release(1, kMessageMax);
  ASSERT_TRUE(receiver.credit_due(0));
  EXPECT_EQ(receiver.take_limits(0).bytes, 2 * kFirst);
}

TEST(NotifyReceiver, WhatCameInAFormerSessionGivesNothing) {
  NotifyReceiver receiver({.share = 10u << 20});
  receiver.on_release(5, 1000);
  EXPECT_EQ(receiver.held(), 0U);
  ASSERT_TRUE(receiver.on_receive(10));
  receiver.on_release(5, 1000);
  EXPECT_EQ(receiver.held(), 0U);
  EXPECT_EQ(receiver.waiting_messages(), 0U);
  EXPECT_EQ(receiver.take_limits(0).bytes, kFirst + 74);
}

TEST(NotifyReceiver, LimitsNeverShrink) {
  NotifyReceiver receiver({.share = 10u << 20});
  EXPECT_EQ(receiver.take_limits(kPlenty).bytes, kWindow);
  EXPECT_EQ(receiver.take_limits(0).bytes, kWindow);
}

TEST(NotifyReceiver, AReaderWhoKeepsUpTellsAQuarterOfTheWindowAtATime) {
  NotifyReceiver receiver({.share = 64u << 20});
  CreditSender sender = first_sender();
  sender.on_credit(receiver.take_limits(kPlenty));
  int told = 0;
  constexpr int kSent = 100'000;
  for (int i = 0; i < kSent; ++i) {
    ASSERT_TRUE(sender.try_take(notification_cost(0)));
    ASSERT_TRUE(receiver.on_receive(0));
    receiver.on_release(1, 0);
    if (!receiver.runs_low() || !receiver.credit_due(kPlenty)) continue;
    sender.on_credit(receiver.take_limits(kPlenty));
    ++told;
  }
  EXPECT_LE(told, static_cast<int>(kSent * wire::kNotificationCost / (kWindow / 4)) + 1);
}

// Whatever the share, the room and the sizes, a reader who reads keeps the sender going, and the share is kept.
TEST(NotifyReceiver, NeverStandsStill) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const std::uint64_t share = kFirst + rng.below(std::uint64_t{1} << 20);
    NotifyReceiver receiver({.share = share});
    CreditSender sender = first_sender();
    std::deque<std::size_t> inbox;
    for (int sent = 0; sent < 500;) {
      const std::uint64_t room = rng.chance(0.5) ? 0 : rng.below(std::uint64_t{1} << 20);
      const auto size = static_cast<std::size_t>(rng.chance(0.5) ? rng.below(100) : rng.below(kMessageMax + 1));
      while (!sender.try_take(notification_cost(size))) {
        ASSERT_FALSE(inbox.empty()) << "nothing waits, yet there is no credit";
        receiver.on_release(1, inbox.front());
        inbox.pop_front();
        if (receiver.credit_due(room)) sender.on_credit(receiver.take_limits(room));
      }
      ASSERT_TRUE(receiver.on_receive(size));
      inbox.push_back(size);
      if (receiver.credit_due(room)) sender.on_credit(receiver.take_limits(room));
      ++sent;
      ASSERT_LE(receiver.held(), share);
    }
  }
}

}  // namespace
}  // namespace hawser::proto
