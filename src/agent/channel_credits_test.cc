#include "agent/channel_credits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace hawser::agent {
namespace {

using Taken = ChannelCredits::Taken;
constexpr std::uint32_t kOne = wire::kUserChannelMin, kOther = kOne + 1;

TEST(ChannelCredits, PlacesAreThoseThatThePeerTold) {
  ChannelCredits credits;
  EXPECT_EQ(credits.try_take(kOne, 1), Taken::kNotOpen);
  EXPECT_FALSE(credits.is_open(kOne));
  EXPECT_EQ(credits.on_credit(kOne, {.messages = 2, .bytes = 100}), true);
  EXPECT_TRUE(credits.is_open(kOne));
  EXPECT_EQ(credits.try_take(kOne, 60), Taken::kYes);
  EXPECT_EQ(credits.try_take(kOne, 41), Taken::kNoRoom) << "bytes";
  EXPECT_EQ(credits.try_take(kOne, 40), Taken::kYes);
  EXPECT_EQ(credits.try_take(kOne, 0), Taken::kNoRoom) << "messages";
  credits.give_back(kOne, 40);
  EXPECT_EQ(credits.try_take(kOne, 40), Taken::kYes);
  EXPECT_EQ(credits.try_take(kOther, 1), Taken::kNotOpen);
  EXPECT_EQ(credits.on_credit(kOne, {.messages = 2, .bytes = 100}), false) << "told again";
  EXPECT_EQ(credits.on_credit(kOne, {.messages = 3, .bytes = 200}), true);
  EXPECT_EQ(credits.try_take(kOne, 100), Taken::kYes);
}

TEST(ChannelCredits, APeerOpensSoManyAndNoMore) {
  ChannelCredits credits;
  const wire::CreditLimits some{.messages = 1, .bytes = 1};
  EXPECT_TRUE(credits.on_credit(2, some)) << "the library's own do not count";
  for (std::uint32_t i = 0; i < ChannelCredits::kUsersMax; ++i) ASSERT_TRUE(credits.on_credit(kOne + i, some)) << i;
  EXPECT_FALSE(credits.on_credit(kOne + ChannelCredits::kUsersMax, some)) << "one beyond";
  EXPECT_TRUE(credits.on_credit(kOther, some)) << "known already";
  EXPECT_TRUE(credits.on_credit(3, some)) << "the library's own do not count";
}

TEST(ChannelCredits, ANewSessionBeginsWithoutPlacesAndWithAnotherEpoch) {
  ChannelCredits credits;
  (void)credits.on_credit(kOne, {.messages = 9, .bytes = 9});
  std::uint32_t epoch = 99;
  ASSERT_EQ(credits.try_take(kOne, 1, &epoch), Taken::kYes);
  EXPECT_EQ(epoch, credits.epoch());
  credits.clear();
  EXPECT_NE(epoch, credits.epoch());
  EXPECT_EQ(credits.try_take(kOne, 1), Taken::kNotOpen);
  credits.give_back(kOne, 1);  // The old session took it: nothing happens.
  EXPECT_TRUE(credits.on_credit(kOther, {.messages = 1, .bytes = 1})) << "those of the old session count no more";
  EXPECT_FALSE(credits.state(kOne));
  EXPECT_TRUE(credits.state(kOther));
}

TEST(ChannelCredits, ThreadsNeverTakeMoreThanThereIs) {
  ChannelCredits credits;
  (void)credits.on_credit(kOne, {.messages = 10'000, .bytes = 1'000'000});
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int tries = 0; tries < 5000; ++tries) taken += credits.try_take(kOne, 10) == Taken::kYes ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 10'000);
}

}  // namespace
}  // namespace hawser::agent
