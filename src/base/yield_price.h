#pragma once

// YieldPrice: how long a waiting thread spins before it yields its core. It is found out by what yields cost.
//
// A yield helps where the core's next thread is the awaited one. It costs some microseconds then, and without it
// the wait lasts until the kernel takes the core away. It harms where the next thread is another program's, which keeps
// the core for a whole slice of the kernel, 1 to 4 ms. The kernel tells neither who is next nor for how long, but a
// thread sees how long it was away. After a yield that cost a slice the next one comes only once the thread has waited
// in vain for a sixteenth of that time. So a wrong guess costs little either way: a sixteenth of a slice where the
// awaited thread is next, and one slice in a wait that is long.
//
// Thread rule: thread-safe. Of several threads that note what a yield cost, one may be missed.

#include <algorithm>
#include <atomic>
#include <thread>

#include <hawser/time.h>

namespace hawser::base {

class YieldPrice {
 public:
  /// A yield that took less was to a thread that had little to do, as one has that is awaited.
  static constexpr Duration kCheap = std::chrono::microseconds(100);
  static constexpr int kShare = 16;
  static constexpr Duration kPatienceMax = std::chrono::microseconds(200);

  /// How long a thread spins in vain before it yields. Zero: it yields at once.
  Duration patience() const {
    const Duration price = price_.load(std::memory_order_relaxed);
    return price < kCheap ? Duration::zero() : std::min(price / kShare, kPatienceMax);
  }
  /// A yield took so long. A cheap one may be luck: it halves the price.
  void note(Duration took) {
    const Duration before = price_.load(std::memory_order_relaxed);
    if (took >= kCheap || before >= kCheap) {
      price_.store(std::max(took, before / 2), std::memory_order_relaxed);
    }
  }
  /// How long it took.
  Duration yield() {
    const Instant before = Clock::steady().now();
    std::this_thread::yield();
    const Duration took = Clock::steady().now() - before;
    note(took);
    return took;
  }

 private:
  std::atomic<Duration> price_{Duration::zero()};
};

}  // namespace hawser::base
