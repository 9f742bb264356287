#pragma once

// Pace: which of many calls that are made again and again do some work on the way: the first one in each tick of the
// kernel's coarse clock (1 to 10 ms), so that a client that sleeps between two calls has it done by each of them; and
// one of 32, so that one that spins has it done every few microseconds.
//
// Thread rule: thread-safe; calls at the same moment may both be due, or be counted as one.

#include <time.h>

#include <atomic>
#include <cstdint>

#include <hawser/export.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

class Pace {
 public:
  static constexpr std::uint32_t kCallsMax = 32;

  bool is_due() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // No system call, and no look at the processor's counter.
    return is_due_at(std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
  }
  /// `tick` only ever changes with the clock.
  bool is_due_at(std::int64_t tick) {
    const std::uint32_t calls = calls_.load(std::memory_order_relaxed) + 1;
    if (calls < kCallsMax && tick_.load(std::memory_order_relaxed) == tick) {
      calls_.store(calls, std::memory_order_relaxed);
      return false;
    }
    tick_.store(tick, std::memory_order_relaxed);
    calls_.store(0, std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<std::int64_t> tick_{-1};
  std::atomic<std::uint32_t> calls_{0};
};

}  // namespace compat
HAWSER_NAMESPACE_END
