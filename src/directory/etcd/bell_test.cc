#include "directory/etcd/bell.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

namespace hawser::directory::etcd {
namespace {

using std::chrono::milliseconds;

Instant in(Duration time) { return Clock::steady().now() + time; }

TEST(Bell, WhatRangBeforeIsNotMissed) {
  Bell bell;
  const std::uint64_t heard = bell.count();
  bell.ring();
  EXPECT_EQ(bell.wait(heard, Instant::max()), heard + 1);
  EXPECT_EQ(bell.wait(heard + 1, in(milliseconds(1))), heard + 1) << "nothing more rang";
}

TEST(Bell, WakesWhoSleeps) {
  Bell bell;
  std::thread ringer([&] {
    const Instant until = in(milliseconds(5));
    while (Clock::steady().now() < until) std::this_thread::yield();
    bell.ring();
  });
  EXPECT_EQ(bell.wait(0, Instant::max()), 1U);
  ringer.join();
}

// A worker that looks for its end, and is told of it before it asks how often it rang, would sleep for ever.
TEST(Bell, AClosedOneLetsNobodySleep) {
  Bell bell;
  bell.ring();
  EXPECT_FALSE(bell.is_closed());
  bell.close();
  EXPECT_TRUE(bell.is_closed());
  EXPECT_EQ(bell.wait(bell.count(), Instant::max()), 1U);
}

TEST(Bell, ClosingWakesWhoSleeps) {
  Bell bell;
  std::thread closer([&] { bell.close(); });
  EXPECT_EQ(bell.wait(0, Instant::max()), 0U);
  closer.join();
}

// Jobs that wait at one directory: what one of them was told must not be lost for the other.
TEST(Bell, WhatOneThreadIsToldIsNewForTheOther) {
  Bell bell;
  const Instant long_ago;
  bell.attend();
  bell.ring();
  std::thread other([&] {
    EXPECT_FALSE(bell.wait_for_news(long_ago)) << "it rang before this thread attended";
    bell.ring();
    EXPECT_TRUE(bell.wait_for_news(long_ago));
    EXPECT_FALSE(bell.wait_for_news(long_ago)) << "it was told already";
  });
  other.join();
  bell.attend();  // Changes nothing: it does already.
  EXPECT_TRUE(bell.wait_for_news(long_ago));
  EXPECT_FALSE(bell.wait_for_news(long_ago));
}

TEST(Bell, EachBellIsHeardByItself) {
  constexpr std::size_t kBells = 6;
  std::array<Bell, kBells> bells;
  for (Bell& bell : bells) bell.attend();
  for (Bell& bell : bells) bell.ring();
  for (Bell& bell : bells) EXPECT_TRUE(bell.wait_for_news({}));
  for (Bell& bell : bells) EXPECT_FALSE(bell.wait_for_news({}));
}

TEST(Bell, WhoAttendsTooManyHearsTheOldestAnew) {
  std::array<Bell, 20> bells;
  for (Bell& bell : bells) bell.attend();
  for (Bell& bell : bells) bell.ring();
  EXPECT_FALSE(bells.front().wait_for_news({})) << "never told of what did not ring";
  bells.front().ring();
  EXPECT_TRUE(bells.front().wait_for_news({}));
  EXPECT_TRUE(bells.back().wait_for_news({}));
}

}  // namespace
}  // namespace hawser::directory::etcd
