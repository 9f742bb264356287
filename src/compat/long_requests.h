#pragma once

// LongRequests: the requests of one agent with long notifications. What they have under way ends when somebody looks at
// them, and others may wait for that: so each look at one is a look at all.
//
// Thread rule: thread-safe. A request joins and leaves under its own lock, and may do so while it is looked at; a look
// must therefore only try to take that lock. Lifetime: a request leaves before it goes.

#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <vector>

#include <hawser/export.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

class LongRequest {
 public:
  /// Looks, unless somebody else is about to.
  virtual void try_look() = 0;

 protected:
  ~LongRequest() = default;
};

class LongRequests {
 public:
  void join(LongRequest* request) {
    const std::lock_guard lock(mutex_);
    all_.insert(request);
    count_.store(all_.size(), std::memory_order_release);
  }
  void leave(LongRequest* request) {
    const std::lock_guard lock(mutex_);
    all_.erase(request);
    count_.store(all_.size(), std::memory_order_release);
  }
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  void look_at_all() {
    const std::lock_guard lock(mutex_);
    const std::vector<LongRequest*> all(all_.begin(), all_.end());
    for (LongRequest* const each : all) {
      if (all_.contains(each)) each->try_look();  // The look at another one may have ended it.
    }
  }

 private:
  std::recursive_mutex mutex_;  ///< What is looked at may leave.
  std::set<LongRequest*> all_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace compat
HAWSER_NAMESPACE_END
