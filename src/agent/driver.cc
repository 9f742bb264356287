// The door's Driver: threads that lead lanes.

#include <hawser/driver.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <hawser/agent.h>

#include "agent/core.h"
#include "agent/fork_guard.h"
#include "base/events.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr unsigned kThreadsMax = 64;

/// One thread and the lanes that it leads. The list of lanes is changed under `mutex`, which the thread holds while it
/// turns, so a detached agent is not touched once detach returns.
class Worker final : public Runner {
 public:
  Worker(base::Epoll epoll, base::EventFd wake, Duration spin)
      : epoll_(std::move(epoll)), wake_(std::move(wake)), spin_(spin) {
    (void)epoll_.add(wake_.fd(), EPOLLIN, 0);
    thread_ = std::thread([this] { run(); });
  }
  ~Worker() {
    if (forks_ != forks_so_far()) {
      (void)new std::thread(std::move(thread_));  // There is none in this process: joining would wait for ever.
      return;
    }
    stop_.store(true, std::memory_order_release);
    wake_.signal();
    thread_.join();
    const base::MutexLock lock(mutex_);
    for (const auto& core : cores_) {
      core->lane.set_runner(nullptr);  // Whoever waits or polls leads from now on.
      core->lane.disarm();
      core->lane.news();
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Status attach(const std::shared_ptr<Core>& core) {
    begin_change();
    const Status status = epoll_.add(core->lane.sleep_fd(), EPOLLIN, 1);
    if (status.ok()) {
      cores_.push_back(core);
      core->lane.set_runner(this);
    }
    end_change();
    core->lane.news();
    if (!status.ok() || !core->is_closed()) return status;
    detach(*core);  // It was closed meanwhile, and may not have seen us.
    return core->usable("Driver::attach");
  }

  bool detach(Core& core) {
    std::shared_ptr<Core> ours;  // Destroyed, if it is the last, when nothing is held.
    begin_change();
    const auto found = std::ranges::find(cores_, &core, &std::shared_ptr<Core>::get);
    if (found != cores_.end()) {
      ours = std::move(*found);
      cores_.erase(found);
      (void)epoll_.remove(core.lane.sleep_fd());
    }
    end_change();
    if (ours == nullptr) return false;
    core.lane.set_runner(nullptr);
    core.lane.disarm();
    core.lane.news();
    return true;
  }
  void let_go(Core& core) override { detach(core); }

  std::size_t load() const { return load_.load(std::memory_order_relaxed); }

 private:
  /// The thread gives way to whoever has announced a change.
  void begin_change() HAWSER_ACQUIRE(mutex_) {
    changes_.fetch_add(1, std::memory_order_seq_cst);
    wake_.signal();
    mutex_.lock();
  }
  void end_change() HAWSER_RELEASE(mutex_) {
    load_.store(cores_.size(), std::memory_order_relaxed);
    mutex_.unlock();
    changes_.fetch_sub(1, std::memory_order_seq_cst);
  }

  std::size_t turn_all() HAWSER_REQUIRES(mutex_) {
    std::size_t work = 0;
    for (const auto& core : cores_) {
      if (core->is_closed()) continue;
      work += core->lane.try_turn();
      if (core->lane.contended()) std::this_thread::yield();
    }
    return work;
  }

  void rest() HAWSER_REQUIRES(mutex_) {
    Instant next = Instant::max();
    Instant now = Clock::steady().now();
    bool idle = true;
    for (const auto& core : cores_) {
      if (core->is_closed()) continue;
      Instant its_next = Instant::max();
      if (!core->lane.arm(&its_next)) idle = false;
      now = core->now();
      next = std::min(next, its_next);
    }
    mutex_.unlock();  // Whoever attaches or detaches signals the epoll.
    if (idle && next > now) {
      std::array<epoll_event, 16> events;
      (void)epoll_.wait(events, next == Instant::max() ? Duration::max() : next - now);
    }
    mutex_.lock();
    wake_.drain();
    for (const auto& core : cores_) {
      core->lane.disarm();
      core->lane.drain_wake();
    }
  }

  void run() {
    Instant busy = Clock::steady().now();
    mutex_.lock();
    while (!stop_.load(std::memory_order_acquire)) {
      while (changes_.load(std::memory_order_seq_cst) > 0) {
        mutex_.unlock();
        std::this_thread::yield();
        mutex_.lock();
      }
      const std::size_t work = turn_all();
      const Instant now = Clock::steady().now();
      if (work > 0) {
        busy = now;
      } else if (now - busy >= spin_) {
        rest();
        busy = Clock::steady().now();
      } else {
        base::cpu_relax();
      }
    }
    mutex_.unlock();
  }

  base::Epoll epoll_;
  base::EventFd wake_;
  const Duration spin_;
  const std::uint32_t forks_ = watch_forks();
  base::Mutex mutex_;
  std::vector<std::shared_ptr<Core>> cores_ HAWSER_GUARDED_BY(mutex_);
  std::atomic<int> changes_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> load_{0};
  std::thread thread_;
};

}  // namespace
}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

struct Driver::Impl {
  std::vector<std::unique_ptr<agent::Worker>> workers;
  const pid_t starter = ::getpid();
  const std::uint32_t forks = agent::watch_forks();

  /// Good, or kInvalid because this is a forked child, in which its threads do not exist.
  Status not_forked(std::string_view call) const {
    if (forks == agent::forks_so_far()) return {};
    return Status(Code::kInvalid, std::string(call) + ": the driver was started by process " + std::to_string(starter) +
                                      ", this is a forked child")
        .with_advice("start a driver in the child");
  }
};

Driver::Driver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Driver::Driver(Driver&&) noexcept = default;
Driver& Driver::operator=(Driver&&) noexcept = default;
Driver::~Driver() = default;

Result<Driver> Driver::start(const DriverOptions& options) {
  if (options.threads == 0 || options.threads > agent::kThreadsMax) {
    return Status(Code::kInvalid, "Driver::start: threads = " + std::to_string(options.threads) + " is not in 1..64");
  }
  auto impl = std::make_unique<Impl>();
  for (unsigned i = 0; i < options.threads; ++i) {
    Result<base::Epoll> epoll = base::Epoll::open();
    if (!epoll) return epoll.error();
    Result<base::EventFd> wake = base::EventFd::open();
    if (!wake) return wake.error();
    impl->workers.push_back(std::make_unique<agent::Worker>(std::move(*epoll), std::move(*wake), options.spin));
  }
  return Driver(std::move(impl));
}

Status Driver::attach(Agent& agent) {
  if (!agent.core()) return Status(Code::kInvalid, "Driver::attach: the agent is empty");
  HAWSER_TRY(impl_->not_forked("Driver::attach"));
  HAWSER_TRY(agent.core()->usable("Driver::attach"));
  if (agent.core()->lane.driven()) {
    return Status(Code::kInvalid, "Driver::attach: agent '" + std::string(agent.name()) + "' has a driver already");
  }
  const auto least = std::min_element(impl_->workers.begin(), impl_->workers.end(),
                                      [](const auto& a, const auto& b) { return a->load() < b->load(); });
  return (*least)->attach(agent.core());
}

Status Driver::detach(Agent& agent) {
  if (!agent.core()) return Status(Code::kInvalid, "Driver::detach: the agent is empty");
  HAWSER_TRY(impl_->not_forked("Driver::detach"));
  for (const auto& worker : impl_->workers) {
    if (worker->detach(*agent.core())) return {};
  }
  if (agent.core()->is_closed()) return {};  // That detached it.
  return Status(Code::kNotFound,
                "Driver::detach: agent '" + std::string(agent.name()) + "' is not attached to this driver");
}

HAWSER_NAMESPACE_END
