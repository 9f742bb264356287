// The door's Driver: threads that lead lanes.

#include <hawser/driver.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hawser/agent.h>

#include "agent/core.h"
#include "agent/fork_guard.h"
#include "base/abandon.h"
#include "base/events.h"
#include "base/inside.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr unsigned kThreadsMax = 64;

/// While some lanes work, the thread looks so often whether one that sleeps has news.
constexpr Duration kLookEvery = std::chrono::microseconds(20);

/// One agent of a worker. Awake, it is turned in each round; asleep, its lane is armed and its doorbell wakes it. One
/// that is left to waiters is looked at when it is due, and its doorbells are not listened to.
struct Seat {
  std::shared_ptr<Core> core;
  bool is_awake = true;
  bool has_worked = false;       ///< In its last turn.
  bool is_led = false;           ///< A waiter turns it.
  bool is_left = false;          ///< To waiters.
  std::uint8_t pauses = 1;       ///< Of kLinger each, until it is looked at again.
  Instant busy;                  ///< When a turn last did something.
  Instant due = Instant::max();  ///< Asleep: when it has to be turned by itself.
};

/// One thread and the lanes that it leads. The list of lanes is changed under `mutex`, which the thread holds while it
/// turns, so a detached agent is not touched once detach returns. A round costs what the lanes cost that are awake:
/// those that sleep cost nothing until they have news.
class Worker final : public Runner {
 public:
  Worker(base::Epoll epoll, base::EventFd wake, Duration spin)
      : epoll_(std::move(epoll)), bell_(std::make_shared<RunnerBell>(std::move(wake))), spin_(spin) {
    (void)epoll_.add(bell_->wake.fd(), EPOLLIN, 0);
    thread_ = std::thread([this] { run(); });
  }
  ~Worker() {
    if (forks_ != forks_so_far()) {
      base::abandon(thread_);  // There is none in this process: joining would wait for ever.
      return;
    }
    stop_.store(true, std::memory_order_release);
    bell_->wake.signal();
    thread_.join();
    const base::MutexLock lock(mutex_);
    for (const auto& [core, seat] : seats_) {
      seat.core->lane.set_runner(nullptr, nullptr);  // From now on the threads that wait or poll lead it.
      seat.core->lane.disarm();
      seat.core->lane.news();
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Status attach(const std::shared_ptr<Core>& core) {
    begin_change();
    const Status status = epoll_.add(core->lane.sleep_fd(), EPOLLIN, cookie_of(*core));
    if (status.ok()) {
      Seat& seat = seats_[core.get()];
      seat = {.core = core, .is_awake = true, .busy = Clock::steady().now(), .due = Instant::max()};
      awake_.push_back(&seat);
      core->lane.set_runner(this, bell_);
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
    const auto found = seats_.find(&core);
    if (found != seats_.end()) {
      Seat& seat = found->second;
      ours = std::move(seat.core);
      std::erase(awake_, &seat);
      due_.erase({seat.due, &seat});
      seats_.erase(found);
      (void)epoll_.remove(core.lane.sleep_fd());
    }
    end_change();
    if (ours == nullptr) return false;
    core.lane.set_runner(nullptr, nullptr);
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
    bell_->wake.signal();
    mutex_.lock();
  }
  void end_change() HAWSER_RELEASE(mutex_) {
    load_.store(seats_.size(), std::memory_order_relaxed);
    mutex_.unlock();
    changes_.fetch_sub(1, std::memory_order_seq_cst);
  }

  /// A late event may name an agent that was detached, or another at its address, which then wakes for nothing.
  static std::uint64_t cookie_of(const Core& core) { return reinterpret_cast<std::uintptr_t>(&core); }

  std::size_t turn_awake(Instant now) HAWSER_REQUIRES(mutex_) {
    std::size_t work = 0;
    for (Seat* seat : awake_) {
      if (seat->core->is_closed()) continue;
      seat->is_led = seat->core->lane.led() || seat->core->lane.is_claimed();
      if (seat->is_led) continue;
      const std::size_t done = seat->core->lane.try_turn();
      seat->has_worked = done > 0;
      if (seat->has_worked) seat->busy = now;
      work += done;
      if (seat->core->lane.contended()) std::this_thread::yield();
    }
    return work;
  }

  /// Those that had nothing to do for a while.
  void lay_down_idle(Instant now) HAWSER_REQUIRES(mutex_) {
    std::erase_if(awake_, [&](Seat* seat) HAWSER_REQUIRES(mutex_) {
      if (seat->core->is_closed()) {
        seat->is_awake = false;
        return true;
      }
      if (seat->is_led) return hand_over(*seat, now);
      return !seat->has_worked && now - seat->busy >= spin_ && lay_down(*seat, now);
    });
  }

  bool lay_down(Seat& seat, Instant now) HAWSER_REQUIRES(mutex_) {
    Instant its_next = Instant::max();
    seat.busy = now;  // If it has something to do after all.
    if (!seat.core->lane.arm(&its_next)) return false;
    if (seat.core->lane.led() || seat.core->lane.is_claimed()) {  // A waiter began meanwhile.
      seat.core->lane.disarm();
      return hand_over(seat, now);
    }
    seat.is_awake = false;
    seat.due = its_next == Instant::max() ? its_next : now + (its_next - seat.core->now());
    if (seat.due != Instant::max()) due_.insert({seat.due, &seat});
    return true;
  }

  /// A waiter that leads may sleep already, and this thread has disarmed the lane since: nothing would wake it.
  bool hand_over(Seat& seat, Instant now) HAWSER_REQUIRES(mutex_) {
    leave_to_waiters(seat, now);
    if (seat.core->lane.led()) seat.core->lane.nudge();
    return true;
  }

  /// Nothing is armed: the waiter does the work, and this thread looks after it from time to time.
  bool leave_to_waiters(Seat& seat, Instant now) HAWSER_REQUIRES(mutex_) {
    seat.core->lane.leave_to_waiters();
    if (!std::exchange(seat.is_left, true)) {
      (void)epoll_.modify(seat.core->lane.sleep_fd(), 0, cookie_of(*seat.core));
      seat.pauses = 1;
    }
    seat.is_awake = false;
    seat.due = now + seat.pauses * kLinger;
    due_.insert({seat.due, &seat});
    return true;
  }

  void wake_up(Seat& seat, Instant now) HAWSER_REQUIRES(mutex_) {
    due_.erase({seat.due, &seat});  // Also of one that was closed in its sleep: it is not due again for ever.
    if (seat.is_awake || seat.core->is_closed()) return;
    const bool is_led = seat.core->lane.led();
    if (seat.core->lane.is_left_to_waiters(now)) {
      seat.pauses = is_led ? static_cast<std::uint8_t>(std::min(2 * seat.pauses, kLookLeftMax)) : 1;
      leave_to_waiters(seat, now);
      if (!is_led) seat.core->lane.try_turn();  // A waiter that does not lead turns it rarely, or has begun to compute.
      return;
    }
    seat.is_awake = true;
    seat.due = Instant::max();
    seat.busy = now;
    if (std::exchange(seat.is_left, false)) {
      (void)epoll_.modify(seat.core->lane.sleep_fd(), EPOLLIN, cookie_of(*seat.core));
      seat.busy = now - spin_;  // Nobody waits any more: it sleeps again unless its first turn does something.
    }
    seat.core->lane.disarm();
    seat.core->lane.drain_wake();
    awake_.push_back(&seat);
  }

  void wake_those_due(Instant now) HAWSER_REQUIRES(mutex_) {
    while (!due_.empty() && due_.begin()->first <= now) wake_up(*due_.begin()->second, now);
  }

  /// A waiter rang because it leaves jobs behind. Its lane may also be one that was laid down: the waiter took the
  /// signal that was meant for this thread.
  void look_at_those_left(Instant now) HAWSER_REQUIRES(mutex_) {
    for (auto& [core, seat] : seats_) {
      if (!seat.is_awake && (seat.is_left || seat.core->lane.has_jobs())) wake_up(seat, now);
    }
  }

  void wake_those_called(std::span<const epoll_event> events, Instant now) HAWSER_REQUIRES(mutex_) {
    for (const epoll_event& event : events) {
      if (event.data.u64 == 0) {
        bell_->wake.drain();
        if (bell_->called.exchange(false, std::memory_order_seq_cst)) look_at_those_left(now);
        continue;
      }
      const auto found = seats_.find(reinterpret_cast<const Core*>(static_cast<std::uintptr_t>(event.data.u64)));
      if (found != seats_.end()) wake_up(found->second, now);
    }
  }

  /// Waits for news: not at all while somebody is awake.
  void look(Instant now) HAWSER_REQUIRES(mutex_) {
    Duration patience = Duration::zero();
    if (awake_.empty()) patience = due_.empty() ? Duration::max() : due_.begin()->first - now;
    std::array<epoll_event, 64> events;
    mutex_.unlock();  // Whoever attaches or detaches signals the epoll.
    const Result<std::size_t> count = epoll_.wait(events, std::max(patience, Duration::zero()));
    mutex_.lock();
    looked_ = Clock::steady().now();
    if (count) wake_those_called(std::span(events).first(*count), looked_);
    wake_those_due(looked_);
  }

  void run() {
    mutex_.lock();
    while (!stop_.load(std::memory_order_acquire)) {
      while (changes_.load(std::memory_order_seq_cst) > 0) {
        mutex_.unlock();
        std::this_thread::yield();
        mutex_.lock();
      }
      const std::size_t work = turn_awake(Clock::steady().now());
      const Instant now = Clock::steady().now();
      lay_down_idle(now);
      const bool has_sleepers = awake_.size() < seats_.size();
      if (awake_.empty() || (has_sleepers && now - looked_ >= kLookEvery)) {
        look(now);
      } else if (work == 0) {
        base::cpu_relax();
      }
    }
    mutex_.unlock();
  }

  base::Epoll epoll_;
  const std::shared_ptr<RunnerBell> bell_;
  const Duration spin_;
  const std::uint32_t forks_ = watch_forks();
  base::Mutex mutex_;
  std::unordered_map<const Core*, Seat> seats_ HAWSER_GUARDED_BY(mutex_);
  std::vector<Seat*> awake_ HAWSER_GUARDED_BY(mutex_);
  std::set<std::pair<Instant, Seat*>> due_ HAWSER_GUARDED_BY(mutex_);  ///< Those that sleep and have a deadline.
  Instant looked_ HAWSER_GUARDED_BY(mutex_) = Instant::min();
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
  if (!core_of(agent)) return Status(Code::kInvalid, "Driver::attach: the agent is empty");
  if (!impl_) return Status(Code::kInvalid, "Driver::attach: this driver is empty: it was moved to another variable");
  HAWSER_TRY(impl_->not_forked("Driver::attach"));
  HAWSER_TRY(core_of(agent)->usable("Driver::attach"));
  if (core_of(agent)->lane.driven()) {
    return Status(Code::kInvalid, "Driver::attach: agent '" + std::string(agent.name()) + "' has a driver already");
  }
  const auto least = std::min_element(impl_->workers.begin(), impl_->workers.end(),
                                      [](const auto& a, const auto& b) { return a->load() < b->load(); });
  return (*least)->attach(core_of(agent));
}

Status Driver::detach(Agent& agent) {
  if (!core_of(agent)) return Status(Code::kInvalid, "Driver::detach: the agent is empty");
  if (!impl_) return Status(Code::kInvalid, "Driver::detach: this driver is empty: it was moved to another variable");
  HAWSER_TRY(impl_->not_forked("Driver::detach"));
  HAWSER_TRY(core_of(agent)->not_inline("Driver::detach"));
  for (const auto& worker : impl_->workers) {
    if (worker->detach(*core_of(agent))) return {};
  }
  if (core_of(agent)->is_closed()) return {};  // That detached it.
  return Status(Code::kNotFound,
                "Driver::detach: agent '" + std::string(agent.name()) + "' is not attached to this driver");
}

HAWSER_NAMESPACE_END
