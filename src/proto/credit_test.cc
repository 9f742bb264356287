#include "proto/credit.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"

namespace hawser::proto {
namespace {

TEST(CreditSender, TakesWithinBothLimits) {
  CreditSender sender({3, 100});
  EXPECT_TRUE(sender.try_take(60));
  EXPECT_FALSE(sender.try_take(41));
  EXPECT_TRUE(sender.try_take(40));
  EXPECT_TRUE(sender.try_take(0));
  EXPECT_FALSE(sender.try_take(0));
  sender.give_back(40);
  EXPECT_TRUE(sender.try_take(10));
  EXPECT_EQ(sender.taken(), (CreditLimits{3, 70}));
}

TEST(CreditSender, NothingGoesBeforeCredit) {
  CreditSender sender;
  EXPECT_FALSE(sender.try_take(0));
  EXPECT_TRUE(sender.on_credit({1, 0}));
  EXPECT_FALSE(sender.try_take(1));
  EXPECT_TRUE(sender.try_take(0));
}

TEST(CreditSender, RepeatedAndOldCreditsDoNothing) {
  CreditSender sender({4, 100});
  EXPECT_FALSE(sender.on_credit({4, 100}));
  EXPECT_FALSE(sender.on_credit({3, 50}));
  EXPECT_EQ(sender.limits(), (CreditLimits{4, 100}));
  EXPECT_TRUE(sender.on_credit({5, 50}));
  EXPECT_EQ(sender.limits(), (CreditLimits{5, 100}));
}

TEST(CreditReceiver, APeerThatOverdrawsIsFound) {
  CreditReceiver receiver({2, 100});
  EXPECT_TRUE(receiver.on_receive(100));
  EXPECT_FALSE(receiver.on_receive(1));
  EXPECT_TRUE(receiver.on_receive(0));
  EXPECT_FALSE(receiver.on_receive(0));
  EXPECT_EQ(receiver.waiting_messages(), 2u);
  EXPECT_EQ(receiver.waiting_bytes(), 100u);
}

TEST(CreditReceiver, TellsEveryQuarterOfTheWindow) {
  CreditReceiver receiver({16, 1 << 20});
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(receiver.on_receive(10));
  EXPECT_FALSE(receiver.on_release(10));
  EXPECT_FALSE(receiver.on_release(10));
  EXPECT_FALSE(receiver.on_release(10));
  EXPECT_TRUE(receiver.on_release(10));
  EXPECT_EQ(receiver.take_limits(), (CreditLimits{20, (1 << 20) + 40}));
  EXPECT_FALSE(receiver.credit_due());
  EXPECT_FALSE(receiver.on_release(10));
  CreditReceiver bytes({1000, 1 << 20});
  ASSERT_TRUE(bytes.on_receive(1 << 18));
  EXPECT_TRUE(bytes.on_release(1 << 18));
}

TEST(CreditReceiver, LimitsToldAreThoseInForce) {
  CreditReceiver receiver({1, 100});
  EXPECT_EQ(receiver.limits(), (CreditLimits{1, 100}));
  ASSERT_TRUE(receiver.on_receive(1));
  EXPECT_TRUE(receiver.on_release(1));
  EXPECT_FALSE(receiver.on_receive(1));  // freed, but the peer does not know yet
  EXPECT_EQ(receiver.take_limits(), (CreditLimits{2, 101}));
  EXPECT_TRUE(receiver.on_receive(1));
}

// Whatever the window and the sizes, a reader who reads keeps the sender going.
TEST(Credit, NeverStandsStill) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const CreditLimits window{1 + rng.below(20), kMessageMax + rng.below(kMessageMax)};
    CreditReceiver receiver(window);
    CreditSender sender(receiver.limits());
    std::deque<std::size_t> inbox;
    for (int sent = 0; sent < 500;) {
      const auto size = static_cast<std::size_t>(rng.chance(0.5) ? rng.below(100) : rng.below(kMessageMax + 1));
      while (!sender.try_take(size)) {
        ASSERT_FALSE(inbox.empty()) << "nothing waits, yet there is no credit";
        const bool due = receiver.on_release(inbox.front());
        inbox.pop_front();
        if (due) sender.on_credit(receiver.take_limits());
      }
      ASSERT_TRUE(receiver.on_receive(size));
      inbox.push_back(size);
      ++sent;
      ASSERT_LE(inbox.size(), window.messages);
      ASSERT_LE(receiver.waiting_bytes(), window.bytes);
    }
  }
}

}  // namespace
}  // namespace hawser::proto
