#include "directory/etcd/bell.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hawser::directory::etcd
