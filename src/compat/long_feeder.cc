#include "compat/long_feeder.h"

#include <utility>

namespace hawser::compat {

void LongFeeder::feed() {
  const std::lock_guard lock(mutex_);
  is_wanted_ = true;
  if (is_running_ || is_stopped_) return;
  if (thread_.joinable()) thread_.join();  // It has said that it is done.
  is_running_ = true;
  thread_ = std::thread([this] { run(); });
}

void LongFeeder::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    is_wanted_ = false;
    lock.unlock();
    const bool are_some_left = look_();
    lock.lock();
    if (!are_some_left && !is_wanted_) break;
    changed_.wait_for(lock, kLookEvery, [this] { return is_stopped_; });
  }
  is_running_ = false;
}

void LongFeeder::stop() {
  std::thread over;
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    over.swap(thread_);
  }
  changed_.notify_all();
  if (over.joinable()) over.join();
}

void LongFeeder::disown() {
  (void)new std::thread(std::move(thread_));  // It is not in this process: joining would hang.
}

}  // namespace hawser::compat
