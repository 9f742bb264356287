#include "runtime/workers.h"

#include <unistd.h>

#include <utility>

namespace hawser::runtime {

Workers::~Workers() {
  if (process_ != ::getpid()) {  // A forked child has no such threads, and one of them may have held the lock.
    leak();
    return;
  }
  std::vector<std::thread> threads;
  {
    const base::MutexLock lock(shared_->mutex);
    shared_->ends = true;
    shared_->jobs.clear();
    threads = std::move(threads_);
  }
  shared_->news.notify_all();
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

/// Without the lock, for the child's only thread: what the parent's threads shared stays as it was.
void Workers::leak() HAWSER_NO_THREAD_SAFETY_ANALYSIS {
  (void)new std::shared_ptr<Shared>(shared_);
  (void)new std::vector<std::thread>(std::move(threads_));
}

void Workers::run(std::function<void()> job) {
  {
    const base::MutexLock lock(shared_->mutex);
    shared_->jobs.push_back(std::move(job));
    if (shared_->jobs.size() > shared_->idle && threads_.size() < threads_max_) {
      threads_.emplace_back([shared = shared_] { work(*shared); });
    }
  }
  shared_->news.notify_one();
}

void Workers::work(Shared& shared) {
  for (;;) {
    std::function<void()> job;
    {
      const base::MutexLock lock(shared.mutex);
      ++shared.idle;
      while (shared.jobs.empty() && !shared.ends) shared.news.wait(shared.mutex);
      --shared.idle;
      if (shared.ends) return;
      job = std::move(shared.jobs.front());
      shared.jobs.pop_front();
    }
    job();
  }
}

}  // namespace hawser::runtime
