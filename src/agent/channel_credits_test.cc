#include "agent/channel_credits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace hawser::agent {
namespace {

using Taken = ChannelCredits::Taken;
Taken take(ChannelCredits& credits, std::uint32_t channel, std::size_t bytes) {
  ChannelCredits::Ticket ticket;
  return credits.try_take(channel, bytes, &ticket);
}
std::optional<bool> tell(ChannelCredits& credits, std::uint32_t channel, const wire::CreditLimits& limits,
                         Priority priority = Priority::kRealtime) {
  const Result<bool> told = credits.on_credit({.channel = channel, .priority = priority, .limits = limits});
  EXPECT_TRUE(told || told.error().code() == Code::kCorrupt);
  return told ? std::optional(*told) : std::nullopt;
}

constexpr std::uint32_t kOne = wire::kUserChannelMin, kOther = kOne + 1;

TEST(ChannelCredits, PlacesAreThoseThatThePeerTold) {
  ChannelCredits credits;
  EXPECT_EQ(take(credits, kOne, 1), Taken::kNotOpen);
  EXPECT_FALSE(credits.is_open(kOne));
  EXPECT_EQ(tell(credits, kOne, {.messages = 2, .bytes = 100}), true);
  EXPECT_TRUE(credits.is_open(kOne));
  EXPECT_EQ(take(credits, kOne, 60), Taken::kYes);
  EXPECT_EQ(take(credits, kOne, 41), Taken::kNoRoom) << "bytes";
  EXPECT_EQ(take(credits, kOne, 40), Taken::kYes);
  EXPECT_EQ(take(credits, kOne, 0), Taken::kNoRoom) << "messages";
  EXPECT_TRUE(credits.give_back(kOne, 40, {.epoch = credits.epoch(), .number = 2}));
  EXPECT_EQ(take(credits, kOne, 40), Taken::kYes);
  EXPECT_EQ(take(credits, kOther, 1), Taken::kNotOpen);
  EXPECT_EQ(tell(credits, kOne, {.messages = 2, .bytes = 100}), false) << "told again";
  EXPECT_EQ(tell(credits, kOne, {.messages = 3, .bytes = 200}), true);
  EXPECT_EQ(take(credits, kOne, 100), Taken::kYes);
}

TEST(ChannelCredits, APeerOpensSoManyAndNoMore) {
  ChannelCredits credits;
  const wire::CreditLimits some{.messages = 1, .bytes = 1};
  EXPECT_TRUE(tell(credits, 2, some)) << "the library's own do not count";
  for (std::uint32_t i = 0; i < ChannelCredits::kUsersMax; ++i) ASSERT_TRUE(tell(credits, kOne + i, some)) << i;
  EXPECT_FALSE(tell(credits, kOne + ChannelCredits::kUsersMax, some)) << "one beyond";
  EXPECT_TRUE(tell(credits, kOther, some)) << "known already";
  EXPECT_TRUE(tell(credits, 3, some)) << "the library's own do not count";
}

TEST(ChannelCredits, ANewSessionBeginsWithoutPlacesAndWithAnotherEpoch) {
  ChannelCredits credits;
  (void)tell(credits, kOne, {.messages = 9, .bytes = 9});
  ChannelCredits::Ticket ticket{.epoch = 99};
  ASSERT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kYes);
  EXPECT_EQ(ticket.epoch, credits.epoch());
  credits.clear();
  EXPECT_NE(ticket.epoch, credits.epoch());
  EXPECT_EQ(take(credits, kOne, 1), Taken::kNotOpen);
  EXPECT_TRUE(credits.give_back(kOne, 1, ticket));  // The old session took it: nothing happens.
  EXPECT_TRUE(tell(credits, kOther, {.messages = 1, .bytes = 1})) << "those of the old session count no more";
  EXPECT_FALSE(credits.state(kOne));
  EXPECT_TRUE(credits.state(kOther));
}

TEST(ChannelCredits, AChannelKeepsItsClassUntilTheSessionIsOver) {
  ChannelCredits credits;
  const wire::CreditLimits some{.messages = 9, .bytes = 9};
  EXPECT_TRUE(tell(credits, kOne, some, Priority::kBulk));
  ChannelCredits::Ticket ticket;
  ASSERT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kYes);
  EXPECT_EQ(ticket.priority, Priority::kBulk);
  EXPECT_FALSE(tell(credits, kOne, some, Priority::kCritical));
  credits.clear();
  EXPECT_TRUE(tell(credits, kOne, some, Priority::kCritical));
  ASSERT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kYes);
  EXPECT_EQ(ticket.priority, Priority::kCritical);
}

TEST(ChannelCredits, EachMessageOfAChannelHasTheNextNumber) {
  ChannelCredits credits;
  EXPECT_TRUE(credits.numbered().empty());
  for (const std::uint32_t channel : {2u, kOne, kOther}) {
    (void)tell(credits, channel, {.messages = 3, .bytes = 100});
  }
  EXPECT_TRUE(credits.numbered().empty()) << "none was sent";
  ChannelCredits::Ticket ticket;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kYes);
    EXPECT_EQ(ticket.number, number);
  }
  EXPECT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kNoRoom);
  ASSERT_EQ(credits.try_take(2, 1, &ticket), Taken::kYes);
  ASSERT_EQ(credits.numbered().size(), 1u) << "the library's own are not told, nor those on which nothing was sent";
  EXPECT_EQ(credits.numbered().front().first, kOne);
  EXPECT_EQ(credits.numbered(kOne).last, 3u);
  EXPECT_EQ(credits.numbered(kOther).last, 0u);
  credits.clear();
  (void)tell(credits, kOne, {.messages = 3, .bytes = 100});
  ASSERT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kYes);
  EXPECT_EQ(ticket.number, 1u) << "a new session";
}

TEST(ChannelCredits, WhatIsLeftGoesBeforeWhatIsSentAtOnce) {
  ChannelCredits credits;
  (void)tell(credits, kOne, {.messages = 9, .bytes = 100});
  ChannelCredits::Ticket ticket;
  EXPECT_EQ(credits.try_leave(kOne, 1, &ticket, [](const auto&) { return false; }), Taken::kNotLeft);
  ASSERT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kYes);
  EXPECT_EQ(ticket.number, 1u) << "what was not left took no number";
  std::uint64_t left = 0;
  const auto leave = [&left](const ChannelCredits::Ticket& its) {
    left = its.number;
    return true;
  };
  ASSERT_EQ(credits.try_leave(kOne, 1, &ticket, leave), Taken::kYes);
  EXPECT_EQ(left, 2u);
  EXPECT_EQ(credits.numbered(kOne).left, 1u);
  EXPECT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kBehind);
  credits.note_gone(kOne);
  ASSERT_EQ(credits.try_take(kOne, 1, &ticket), Taken::kYes);
  EXPECT_EQ(ticket.number, 3u);
}

/// The lane's holder finds that its message has no room, when a later one has been left already: no number is given to
/// two, and none is left out.
TEST(ChannelCredits, WhatWasOvertakenCannotBeTakenBack) {
  ChannelCredits credits;
  (void)tell(credits, kOne, {.messages = 9, .bytes = 100});
  ChannelCredits::Ticket first, second, third;
  ASSERT_EQ(credits.try_take(kOne, 1, &first), Taken::kYes);
  EXPECT_TRUE(credits.give_back(kOne, 1, first));
  ASSERT_EQ(credits.try_take(kOne, 1, &second), Taken::kYes);
  EXPECT_EQ(second.number, 1u);
  ASSERT_EQ(credits.try_leave(kOne, 1, &third, [](const auto&) { return true; }), Taken::kYes);
  EXPECT_FALSE(credits.give_back(kOne, 1, second));
  EXPECT_EQ(credits.numbered(kOne).last, 2u);
  EXPECT_EQ(credits.numbered(kOne).left, 2u) << "both go later";
}

TEST(ChannelCredits, ThreadsNeverTakeMoreThanThereIs) {
  ChannelCredits credits;
  (void)tell(credits, kOne, {.messages = 10'000, .bytes = 1'000'000});
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int tries = 0; tries < 5000; ++tries) taken += take(credits, kOne, 10) == Taken::kYes ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 10'000);
}

}  // namespace
}  // namespace hawser::agent
