#pragma once

// Workers: threads that run jobs, which may block. None is there before the first job, and none more than there are
// jobs for.
//
// Thread rule: thread-safe. Lifetime: the destructor waits for the jobs that run, unless it is called from one, or in a
// forked child.

#include <unistd.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace hawser::runtime {

class Workers {
 public:
  explicit Workers(std::size_t threads_max) : threads_max_(threads_max) {}
  /// What has not begun is dropped.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Whoever gives the jobs bounds them.
  void run(std::function<void()> job);

 private:
  /// What the threads share; it outlives the object where a job destroys that.
  struct Shared {
    base::Mutex mutex;
    base::CondVar news;
    std::deque<std::function<void()>> jobs HAWSER_GUARDED_BY(mutex);
    std::size_t idle HAWSER_GUARDED_BY(mutex) = 0;
    bool ends HAWSER_GUARDED_BY(mutex) = false;
  };
  static void work(Shared& shared);
  void leak();

  const int process_ = ::getpid();
  const std::size_t threads_max_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::vector<std::thread> threads_ HAWSER_GUARDED_BY(shared_->mutex);
};

}  // namespace hawser::runtime
