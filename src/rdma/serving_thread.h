#pragma once

// ServingThread: the thread of a backend that runs itself. It serves round after round, and sleeps on the completion
// queue's descriptor and a bell. Where no Driver runs the agent, it moves the agent on, too. A user's thread that waits
// for an operation moves the agent on by itself meanwhile, with less delay.
//
// Thread rule: thread-safe, but for start and stop. Lifetime: stop before what it uses goes.

#include <atomic>
#include <functional>
#include <thread>

#include <hawser/agent.h>
#include <hawser/time.h>

#include "base/events.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class ServingThread {
 public:
  struct Uses {
    Agent& agent;
    int queue_fd = -1;
    const base::EventFd& wake;
    std::function<bool()> serve;    ///< One round. Whether something moved.
    std::function<Duration()> nap;  ///< How long it may sleep without a signal.
  };
  explicit ServingThread(Uses uses) : uses_(std::move(uses)) {}
  ServingThread(const ServingThread&) = delete;
  ServingThread& operator=(const ServingThread&) = delete;

  void start();
  /// Ends it, if it runs.
  void stop();
  /// In a fork: the thread exists in the parent only.
  void abandon();

  /// A user's thread moves the agent on between the two.
  void begin_wait() { waiters_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() { waiters_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  void run();

  const Uses uses_;
  std::atomic<bool> stop_{false};
  std::atomic<unsigned> waiters_{0};
  std::thread thread_;
};

}  // namespace rdma
HAWSER_NAMESPACE_END
