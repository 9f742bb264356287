#pragma once

// SpinLock and what spinning needs: for flags that are held for nanoseconds, such as a lane's leadership.
//
// Thread rule: any thread. Try first and sleep elsewhere: lock() never sleeps, and its holder must not block.

#include <atomic>
#include <cstddef>

#include "base/thread_annotations.h"

namespace hawser::base {

/// On x86 and on the arm64 servers we know. A constant, not std::hardware_destructive_interference_size, whose value
/// may change with a compiler flag and so break the layout of shared memory.
inline constexpr std::size_t kCacheLine = 64;

/// Tells the core that this is a spin loop.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` does nothing on most servers; `isb` gives way as `pause` does
#endif
}

class HAWSER_CAPABILITY("spin lock") SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  bool try_lock() HAWSER_TRY_ACQUIRE(true) {
    // Looks before it writes, so that those who fail do not steal the holder's cache line.
    return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
  }
  void lock() HAWSER_ACQUIRE() {
    while (!try_lock()) cpu_relax();
  }
  void unlock() HAWSER_RELEASE() { held_.store(false, std::memory_order_release); }
  /// A glance; stale at once.
  bool is_held() const { return held_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> held_{false};
};

/// Holds a SpinLock for a scope.
class HAWSER_SCOPED_CAPABILITY SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) HAWSER_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~SpinGuard() HAWSER_RELEASE() { lock_.unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace hawser::base
