#pragma once

// Mutex, MutexLock and CondVar: the standard ones, with Clang's thread-safety annotations and waits until an Instant.
//
// Thread rule: any thread. Deadlines are instants of Clock::steady(): who waits here waits in real time.

#include <chrono>
#include <condition_variable>
#include <mutex>

#include <hawser/time.h>

#include "base/thread_annotations.h"

namespace hawser::base {

class HAWSER_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() HAWSER_ACQUIRE() { mutex_.lock(); }
  bool try_lock() HAWSER_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() HAWSER_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class HAWSER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HAWSER_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() HAWSER_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Wakes may be spurious: wait in a loop over the condition.
class CondVar {
 public:
  void wait(Mutex& mutex) HAWSER_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  /// False when `deadline` has passed; Instant::max() waits without end.
  bool wait_until(Mutex& mutex, Instant deadline) HAWSER_REQUIRES(mutex) {
    if (deadline == Instant::max()) {
      wait(mutex);
      return true;
    }
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const std::chrono::steady_clock::time_point until{Duration(deadline.ns())};
    const bool woken = condition_.wait_until(held, until) == std::cv_status::no_timeout;
    held.release();
    return woken;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace hawser::base
