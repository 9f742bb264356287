#pragma once

// SpinCredit: whether a waiting thread may look for news, or has to sleep at once. It is found out by what looking
// costs and saves.
//
// A thread that looks for news keeps its core. On a core of its own it has the news at once, and saves the time to
// sleep and to be woken. Beside other programs the kernel takes its core away for a slice or more, 1 to 10 ms. A thread
// that slept would lose nothing: the kernel lets a woken thread run before one that computes. The kernel does not tell
// who else wants the core. But a thread that looks sees the gaps in its own time.
//
// So looking has an account. Each wait that ends while its thread looks earns what a sleep would have cost. Each gap
// costs its length. Once the account is overdrawn, threads sleep at once. After a rest they try again, with nothing on
// the account. Each try that fails doubles the rest. So tries cost about a hundredth of the time where they always
// fail. And a thread that loses a slice now and then goes on looking where it has many short waits in each slice.
//
// Thread rule: thread-safe. Of several threads that write at once, what one noted may be missed.

#include <algorithm>
#include <atomic>
#include <chrono>

#include <hawser/time.h>

namespace hawser::base {

class SpinCredit {
 public:
  /// A gap in the time of a thread that does nothing but look: a slice of the kernel. Shorter ones come on quiet cores,
  /// too, where a network, or another rank of this host that sends over one, interrupts the thread.
  static constexpr Duration kLoss = std::chrono::milliseconds(2);
  /// What it takes to sleep and to be woken, at both ends.
  static constexpr Duration kEarned = std::chrono::microseconds(10);
  /// About two slices. What was earned long ago does not pay for more.
  static constexpr Duration kMost = std::chrono::milliseconds(8);
  static constexpr Duration kRestLeast = std::chrono::milliseconds(10), kRestMost = std::chrono::milliseconds(640);

  /// False: who waits sleeps at once. `now` is by the clock of `lost`.
  bool may_spin(Instant now) {
    if (credit_.load(std::memory_order_relaxed) >= Duration::zero()) [[likely]]
      return true;
    if (now < until_.load(std::memory_order_relaxed)) return false;
    credit_.store(Duration::zero(), std::memory_order_relaxed);
    return true;
  }
  /// A wait ended while its thread looked, without a sleep or a gap.
  void found() {
    const Duration credit = credit_.load(std::memory_order_relaxed);
    if (credit >= kMost) [[likely]]
      return;
    if (credit < Duration::zero()) return;  // It was short by itself.
    credit_.store(credit + kEarned, std::memory_order_relaxed);
    if (credit + kEarned >= kMost) rest_.store(kRestLeast, std::memory_order_relaxed);
  }
  /// A thread that looked was away for so long. Less than kLoss counts for nothing.
  void lost(Duration took, Instant now) {
    if (took < kLoss) return;
    const Duration credit = credit_.load(std::memory_order_relaxed);
    if (credit < Duration::zero()) return;  // Another thread's try has failed already.
    credit_.store(credit - took, std::memory_order_relaxed);
    if (credit >= took) return;
    const Duration rest = rest_.load(std::memory_order_relaxed);
    until_.store(now + rest, std::memory_order_relaxed);
    rest_.store(std::min(2 * rest, kRestMost), std::memory_order_relaxed);
  }

 private:
  std::atomic<Duration> credit_{Duration::zero()};  ///< Below zero: nobody looks.
  std::atomic<Instant> until_{Instant()};
  std::atomic<Duration> rest_{kRestLeast};  ///< The next one.
};

}  // namespace hawser::base
