#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/events.h"
#include "base/format.h"
#include "base/mutex.h"
#include "base/try.h"
#include "fileio/queue.h"

namespace hawser::fileio {
namespace {

class ThreadQueue final : public Queue {
 public:
  ThreadQueue(std::uint32_t depth, base::EventFd bell) : depth_(depth), bell_(std::move(bell)) {}
  ~ThreadQueue() override;
  Status start_threads(std::uint32_t count);

  std::string_view name() const override { return "threads"; }
  std::uint32_t in_flight() const override { return in_flight_; }
  bool start(const Operation& operation) override;
  bool flush() override { return true; }
  void cancel(std::uint64_t cookie) override;
  std::size_t reap(std::span<Ended> out) override;
  bool has_ended() const override {
    const base::MutexLock lock(mutex_);
    return !ended_.empty();
  }
  int wait_fd() const override { return bell_.fd(); }
  void disown_after_fork() override { bell_ = base::EventFd(base::Fd()); }

 private:
  void work();

  const std::uint32_t depth_;
  base::EventFd bell_;  ///< Rings when something ended.
  std::uint32_t in_flight_ = 0;
  mutable base::Mutex mutex_;
  base::CondVar wake_;
  std::deque<Operation> waiting_ HAWSER_GUARDED_BY(mutex_);  ///< At most depth_, with those of ended_.
  std::deque<Ended> ended_ HAWSER_GUARDED_BY(mutex_);
  bool is_closing_ HAWSER_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

int perform(const Operation& operation) {
  ssize_t result = 0;
  do {
    switch (operation.kind) {
      case Operation::Kind::kRead:
        result = ::pread(operation.fd, operation.memory, operation.size, static_cast<off_t>(operation.offset));
        break;
      case Operation::Kind::kWrite:
        result = ::pwrite(operation.fd, operation.memory, operation.size, static_cast<off_t>(operation.offset));
        break;
      case Operation::Kind::kSync:
        result = ::fsync(operation.fd);
        break;
    }
  } while (result < 0 && errno == EINTR);
  return result < 0 ? -errno : static_cast<int>(result);
}

Status ThreadQueue::start_threads(std::uint32_t count) {
  try {
    while (threads_.size() < count) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    return Status(Code::kFailed, base::format("starting {} threads for files: {}", count, error.what()));
  }
  return {};
}

ThreadQueue::~ThreadQueue() {
  mutex_.lock();
  is_closing_ = true;  // Operations that wait are still done: their memory is not touched after this.
  mutex_.unlock();
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadQueue::start(const Operation& operation) {
  if (in_flight_ == depth_) return false;
  ++in_flight_;
  mutex_.lock();
  waiting_.push_back(operation);
  mutex_.unlock();
  wake_.notify_one();
  return true;
}

void ThreadQueue::cancel(std::uint64_t cookie) {
  const base::MutexLock lock(mutex_);
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    if (at->cookie != cookie) continue;
    waiting_.erase(at);
    ended_.push_back({.cookie = cookie, .result = -ECANCELED});
    bell_.signal();
    return;
  }
}

std::size_t ThreadQueue::reap(std::span<Ended> out) {
  std::size_t count = 0;
  const base::MutexLock lock(mutex_);
  for (; count < out.size() && !ended_.empty(); ++count) {
    out[count] = ended_.front();
    ended_.pop_front();
  }
  if (ended_.empty()) bell_.drain();
  in_flight_ -= static_cast<std::uint32_t>(count);
  return count;
}

void ThreadQueue::work() {
  mutex_.lock();
  while (!waiting_.empty() || !is_closing_) {
    if (waiting_.empty()) {
      wake_.wait(mutex_);
      continue;
    }
    const Operation operation = waiting_.front();
    waiting_.pop_front();
    mutex_.unlock();
    const int result = perform(operation);
    mutex_.lock();
    ended_.push_back({.cookie = operation.cookie, .result = result});
    bell_.signal();
  }
  mutex_.unlock();
}

}  // namespace

Result<std::unique_ptr<Queue>> open_thread_queue(const QueueOptions& options) {
  HAWSER_TRY_ASSIGN(base::EventFd bell, base::EventFd::open());
  auto queue = std::make_unique<ThreadQueue>(options.depth, std::move(bell));
  HAWSER_TRY(queue->start_threads(options.threads));
  return std::unique_ptr<Queue>(std::move(queue));
}

Result<std::unique_ptr<Queue>> open_queue(const QueueOptions& options, Status* why_not_uring) {
  if (options.engine != Engine::kThreads) {
    Result<std::unique_ptr<Queue>> ring = open_uring_queue(options);
    if (ring || options.engine == Engine::kUring) return ring;
    *why_not_uring = ring.error();
  }
  return open_thread_queue(options);
}

}  // namespace hawser::fileio
