#include "compat/long_feeder.h"

#include <gtest/gtest.h>

#include <atomic>

namespace hawser::compat {
namespace {

/// Waits until `count` has that value, for ten seconds at most.
bool reaches(std::atomic<int>& count, int value) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (count < value && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  return count >= value;
}

TEST(LongFeeder, LooksUntilNothingIsLeftAndAnewWhenThereIs) {
  std::atomic<int> looks{0};
  std::atomic<int> left{3};
  LongFeeder feeder([&] {
    ++looks;
    return --left > 0;
  });
  EXPECT_EQ(looks, 0) << "nobody asked for it";
  feeder.feed();
  EXPECT_TRUE(reaches(looks, 3));
  left = 2;
  feeder.feed();
  EXPECT_TRUE(reaches(looks, 5));
}

TEST(LongFeeder, StopsThoughSomeAreLeftAndBeginsNoMore) {
  std::atomic<int> looks{0};
  LongFeeder feeder([&] {
    ++looks;
    return true;
  });
  feeder.feed();
  EXPECT_TRUE(reaches(looks, 2));
  feeder.stop();
  const int seen = looks;
  feeder.feed();
  feeder.stop();
  EXPECT_EQ(looks, seen);
}

TEST(LongFeeder, ManyThreadsMayAskForIt) {
  std::atomic<int> looks{0};
  LongFeeder feeder([&] {
    ++looks;
    return false;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) feeder.feed();
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_TRUE(reaches(looks, 1));
}

}  // namespace
}  // namespace hawser::compat
