#pragma once

// A lane for tests of what takes its lock and waits for its turns: nothing turns, and the time of its clock passes by
// waiting alone.
//
// Thread rule: thread-safe but for its clock, which the thread that waits moves on.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>

#include "agent/lane_access.h"
#include "base/mutex.h"
#include "base/test_clock.h"

namespace hawser::agent {

class TestLane final : public LaneAccess {
 public:
  void lock() override HAWSER_ACQUIRE(in_lane) HAWSER_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.lock();
    is_locked = true;
  }
  void unlock() override HAWSER_RELEASE(in_lane) HAWSER_NO_THREAD_SAFETY_ANALYSIS {
    is_locked = false;
    mutex_.unlock();
  }
  /// Each look is a millisecond later than the one before; `meanwhile` is what happens between two.
  bool wait_until(const std::function<bool()>& reached, Instant deadline) override HAWSER_EXCLUDES(in_lane) {
    for (;;) {
      if (reached()) return true;
      if (clock.now() >= deadline) return false;
      clock.now_ = std::min(deadline, clock.now() + std::chrono::milliseconds(1));
      ++waits;
      if (meanwhile) meanwhile();
    }
  }
  void wake() override { ++wakes; }
  void news() override { ++tidings; }
  void news_from_outside() override { ++tidings; }

  base::TestClock clock;
  std::function<void()> meanwhile;
  std::atomic<bool> is_locked{false};
  std::atomic<int> waits{0}, wakes{0}, tidings{0};

 private:
  base::Mutex mutex_;
};

}  // namespace hawser::agent
