#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/spin.h"

namespace hawser::base {
namespace {

using namespace std::chrono_literals;

struct Shared {
  Mutex mutex;
  CondVar changed;
  int value HAWSER_GUARDED_BY(mutex) = 0;
};

TEST(CondVar, WakesTheWaiter) {
  Shared shared;
  std::thread other([&shared] {
    MutexLock lock(shared.mutex);
    shared.value = 1;
    shared.changed.notify_all();
  });
  {
    MutexLock lock(shared.mutex);
    while (shared.value == 0) shared.changed.wait_until(shared.mutex, Instant::max());
    EXPECT_EQ(shared.value, 1);
  }
  other.join();
}

TEST(CondVar, GivesUpAtItsDeadline) {
  Shared shared;
  MutexLock lock(shared.mutex);
  const Instant deadline = Clock::steady().now() + 1ms;
  while (shared.changed.wait_until(shared.mutex, deadline)) {  // spurious wakes
  }
  EXPECT_GE(Clock::steady().now(), deadline);
  EXPECT_FALSE(shared.changed.wait_until(shared.mutex, Instant::from_ns(0)));
  EXPECT_FALSE(shared.changed.wait_until(shared.mutex, Instant::min()));
}

// The analysis follows a lock through `if`, not through EXPECT_TRUE.
bool tries(SpinLock& lock) HAWSER_NO_THREAD_SAFETY_ANALYSIS { return lock.try_lock(); }
void releases(SpinLock& lock) HAWSER_NO_THREAD_SAFETY_ANALYSIS { lock.unlock(); }

TEST(SpinLock, ExcludesAndTries) {
  SpinLock lock;
  EXPECT_TRUE(tries(lock));
  EXPECT_TRUE(lock.is_held());
  EXPECT_FALSE(tries(lock));
  releases(lock);
  EXPECT_FALSE(lock.is_held());

  int count = 0;
  const auto work = [&] {
    for (int i = 0; i < 10'000; ++i) {
      while (!lock.try_lock()) std::this_thread::yield();
      ++count;
      lock.unlock();
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(count, 20'000);
}

}  // namespace
}  // namespace hawser::base
