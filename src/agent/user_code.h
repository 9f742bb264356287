#pragma once

// UserCode: which thread runs code of the user in the middle of a turn of an agent's lane, as inline handlers of calls
// are run. That thread holds the lane's lock, so a call of it that took the lock, or waited for a turn, would hang.
//
// Thread rule: `begin` and `end` under the lane's lock; `runs_here` from any thread.

#include <atomic>
#include <thread>

namespace hawser::agent {

class UserCode {
 public:
  void begin() { thread_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  void end() { thread_.store(std::thread::id(), std::memory_order_relaxed); }

  /// This thread runs it. Another one that begins or ends meanwhile changes nothing about that.
  bool runs_here() const {
    const std::thread::id thread = thread_.load(std::memory_order_relaxed);
    return thread != std::thread::id() && thread == std::this_thread::get_id();
  }

 private:
  std::atomic<std::thread::id> thread_{std::thread::id()};
};

}  // namespace hawser::agent
