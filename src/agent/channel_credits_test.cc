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
  credits.give_back(kOne, 40);
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
  credits.give_back(kOne, 1);  // The old session took it: nothing happens.
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
