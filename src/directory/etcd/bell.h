#pragma once

// Bell: tells sleepers that something happened. What rang before they slept is not missed: they say how often they had
// heard it. Once closed it lets nobody sleep.
//
// Thread rule: any thread.

#include <cstdint>

#include <hawser/time.h>

#include "base/mutex.h"

namespace hawser::directory::etcd {

class Bell {
 public:
  void ring() {
    base::MutexLock lock(mutex_);
    ++count_;
    rung_.notify_all();
  }
  void close() {
    base::MutexLock lock(mutex_);
    closed_ = true;
    rung_.notify_all();
  }
  bool is_closed() {
    base::MutexLock lock(mutex_);
    return closed_;
  }
  std::uint64_t count() {
    base::MutexLock lock(mutex_);
    return count_;
  }
  /// Until it has rung more than `heard` times, is closed, or it is `until`. Returns how often it has rung.
  std::uint64_t wait(std::uint64_t heard, Instant until) {
    base::MutexLock lock(mutex_);
    while (count_ == heard && !closed_ && rung_.wait_until(mutex_, until)) continue;
    return count_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar rung_;
  std::uint64_t count_ HAWSER_GUARDED_BY(mutex_) = 0;
  bool closed_ HAWSER_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::directory::etcd
