#include "agent/lane.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "agent/core.h"
#include "agent/engine.h"
#include "agent/slot.h"
#include "agent/status_seat.h"

namespace hawser::agent {
namespace {

constexpr std::size_t kSubmissionsPerTurn = 256;
/// A leader that has nothing to do for so long lets other threads of its core run: the one that it waits for may be
/// among them.
constexpr Duration kYieldAfter = std::chrono::microseconds(1);
/// A thread leaves a message in some instructions. It takes longer only if the system stops it among them.
constexpr Duration kLeavingPatience = std::chrono::seconds(1);
constexpr Duration kFollowerNap = std::chrono::milliseconds(20);  ///< Bound on a wake lost to a race in leadership.

}  // namespace

Status Lane::open() {
  Result<base::Epoll> epoll = base::Epoll::open();
  if (!epoll) return epoll.error();
  Result<base::EventFd> wake = base::EventFd::open();
  if (!wake) return wake.error();
  epoll_ = std::make_unique<base::Epoll>(std::move(*epoll));
  wake_ = std::move(*wake);
  return epoll_->add(wake_.fd(), EPOLLIN, 0);
}

void Lane::answer_on(StatusSeat& seat) {
  seat_ = &seat;
  add_part(seat);
}

Status Lane::watch_port(int fd) { return fd < 0 ? Status() : epoll_->add(fd, EPOLLIN, 1); }

void Lane::disown_after_fork() {
  // The epoll instance is shared with the parent: closing ours leaves the parent's interest list as it is.
  epoll_.reset();
  wake_ = base::EventFd(base::Fd());
  timer_.reset();
}

void Lane::lock() HAWSER_NO_THREAD_SAFETY_ANALYSIS {
  if (mutex_.try_lock() || core_.life.user_code().runs_here()) return;
  contenders_.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
  contenders_.fetch_sub(1, std::memory_order_relaxed);
}

void Lane::run_for_user(const std::function<void()>& code) {
  is_lent_ = true;
  core_.life.user_code().begin();
  code();
  core_.life.user_code().end();
  is_lent_ = false;
}

bool Lane::leave(Slot* slot) {
  if (!submissions_.try_push(std::move(slot))) return false;
  asked_.store(true, std::memory_order_release);
  wake();
  return true;
}

/// Takes all that threads left before this call. One thread may stand in the middle of leaving something, with what
/// another one left behind it. The lane waits for the first, because the second may send more, which must not overtake.
std::size_t Lane::take_left_over(Instant now, const Status& refused) {
  std::size_t taken = 0;
  for (const std::size_t end = left_over_.end(); left_over_.holds_before(end);) {
    LeftOver left;
    if (!left_over_.try_pop(left)) {
      if (left_over_.await_front(kLeavingPatience)) continue;
      break;  // That thread asks for a turn once it goes on.
    }
    ++taken;
    if (left.kind == LeftOver::Kind::kBeginning) {
      left.begin(now, refused);
    } else if (refused.ok()) {
      core_.engine.messages().take_left_over(std::move(left), now);
    }
  }
  return taken;
}

std::size_t Lane::take_submissions(std::size_t most, Instant now) {
  std::size_t taken = 0;
  Slot* slot = nullptr;
  while (taken < most && submissions_.try_pop(slot)) {
    take_left_over(now);  // Its thread may have sent a notification before, after the last look.
    PeerCore& peer = *slot->plan->peer;
    if (Status refused = core_.engine.dispatcher().accept(*slot, now); refused.ok()) {
      core_.engine.dispatcher().serve_soon(peer);
    } else {
      core_.engine.transfers().refuse(*slot, std::move(refused), now);
    }
    ++taken;
  }
  return taken;
}

std::size_t Lane::take_cancels(Instant now) {
  std::size_t ended = 0;
  Slot* slot = nullptr;
  while (cancels_.try_pop(slot)) ended += core_.engine.transfers().apply_cancel(*slot, now) ? 1 : 0;
  const bool must_look =
      must_look_at_all_.load(std::memory_order_relaxed) && must_look_at_all_.exchange(false, std::memory_order_acq_rel);
  return must_look ? ended + core_.engine.transfers().apply_cancels(now) : ended;
}

std::size_t Lane::take_what_was_left(Instant now) {
  (void)asked_.exchange(false, std::memory_order_acq_rel);
  const std::size_t work = take_left_over(now) + take_submissions(kSubmissionsPerTurn, now) + take_cancels(now);
  if (!submissions_.empty() || !left_over_.empty()) asked_.store(true, std::memory_order_relaxed);
  return work;
}

std::size_t Lane::turn(Instant now) {
  turned_ = now;
  if (page_ != nullptr) page_->worked(now);
  std::size_t work = is_asked() ? take_what_was_left(now) : 0;
  for (Part* const part : parts_) {
    if (now >= part->next_deadline()) work += part->turn(now);
  }
  work += core_.engine.turn(now);
  if (event_wanted_.load(std::memory_order_relaxed)) {
    if (work == 0) {
      arm_event_fd();
    } else if (std::exchange(event_armed_, false)) {
      if (seat_ != nullptr) seat_->woke();
      wake_.signal();  // Until a poll finds nothing to do, no doorbell tells of what comes.
    }
  }
  return work;
}

std::size_t Lane::try_turn() {
  if (!try_lock()) return 0;
  const Instant now = clock_.now();
  if (nothing_new(now)) {
    unlock();
    return 0;
  }
  const std::size_t work = turn(now);
  unlock();
  run_jobs();
  return work;
}

/// What most calls of one who polls for a message find: a third of a turn.
bool Lane::nothing_new(Instant now) {
  if (is_asked() || event_wanted_.load(std::memory_order_relaxed)) return false;
  for (const Part* const part : parts_) {
    if (part->has_jobs() || now >= part->next_deadline()) return false;
  }
  return core_.engine.nothing_new(now);
}

Instant Lane::next_moment() {
  Instant next = core_.engine.next_deadline();
  for (const Part* const part : parts_) next = std::min(next, part->next_deadline());
  return next;
}

bool Lane::has_jobs() const {
  return std::ranges::any_of(parts_, [](const Part* part) { return part->has_jobs(); });
}

bool Lane::run_jobs() {
  bool has_run = false;
  for (Part* const part : parts_) {
    if (!part->has_jobs()) continue;
    part->run_jobs(core_.now());
    has_run = true;
  }
  return has_run;
}

/// Arms the doorbells, unless there is something to do that rings none. Who leaves something from now on rings.
bool Lane::may_sleep() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !is_asked() && core_.engine.prepare_sleep() && (seat_ == nullptr || seat_->may_sleep());
}

void Lane::fall_asleep() {
  armings_.fetch_add(1, std::memory_order_relaxed);
  sleeping_.store(true, std::memory_order_seq_cst);
  if (page_ != nullptr) page_->sleeps(true);
}

void Lane::disarm() {
  sleeping_.store(false, std::memory_order_relaxed);
  if (page_ != nullptr) page_->sleeps(false);
  if (seat_ != nullptr) seat_->woke();
  if (event_wanted_.load(std::memory_order_relaxed)) wake_.signal();  // Nobody rings now: a poll has to arm it again.
}

bool Lane::arm(Instant* next_deadline) {
  lock();
  fall_asleep();
  const bool idle = may_sleep();
  *next_deadline = next_moment();
  unlock();
  if (!idle) disarm();
  return idle;
}

void Lane::rest(Instant deadline) {
  Instant next = Instant::max();
  if (!arm(&next)) return;
  const Instant until = std::min(next, deadline);
  const Instant now = core_.now();
  if (until > now) {
    std::array<epoll_event, 8> events;
    const Result<std::size_t> count = epoll_->wait(events, until == Instant::max() ? Duration::max() : until - now);
    if (count && *count > 0) wake_.drain();
  }
  disarm();
}

bool Lane::wait_in_pauses(const std::function<bool()>& reached, Instant deadline) {
  constexpr int kTurnsMax = 64;  // In a row: where time passes in pauses only, work without end would stop it.
  int turns = 0;
  while (!reached()) {
    if (core_.now() >= deadline) return reached();
    if (turns < kTurnsMax && try_turn() > 0) {
      ++turns;
      continue;
    }
    turns = 0;
    // What must not sleep (an acknowledgement that waits for its moment) still lets time pass: nothing else would.
    constexpr Duration kLookAgain = std::chrono::microseconds(1);
    Instant next = Instant::max();
    if (!arm(&next)) next = core_.now() + kLookAgain;
    core_.hooks.pause(std::max(std::min(next, deadline), core_.now() + kLookAgain));
    disarm();
  }
  return true;
}

void Lane::lock_to_lead(Leader& leader) {
  if (try_lock()) return;
  lock();
  leader.was_idle = false;  // Another thread of this process may have had long work under the lock.
}

void Lane::note_turn(Leader& leader, std::size_t work, Instant now) {
  // While it only looks, a turn comes right after the other one, unless the kernel gave its core to others.
  if (const Duration gap = now - leader.turned; leader.was_idle && gap >= base::SpinCredit::kLoss) {
    spins_.lost(gap, now);
    leader.only_looked = false;
  }
  leader.turned = now;
  leader.was_idle = work == 0;
  if (work > 0) leader.busy = now;
}

Instant Lane::idle(Leader& leader, const std::function<bool()>& must_go_on, Instant now, Instant deadline) {
  const bool may_spin = spins_.may_spin(now);
  if (!may_spin || now - leader.busy >= spin_.window()) {
    if (must_go_on()) return now;
    const Instant before = core_.now();
    rest(deadline);
    leader.only_looked = leader.was_idle = false;
    now = core_.now();
    if (may_spin) spin_.slept(now - before);
  } else if (now - std::max(leader.busy, leader.yielded) >= std::max(kYieldAfter, yields_.patience())) {
    const Duration took = yields_.yield();
    leader.turned = leader.yielded = core_.now();
    spins_.lost(took, leader.yielded);
    leader.only_looked = leader.only_looked && took < base::SpinCredit::kLoss;
  }
  return now;
}

bool Lane::wait_until(const std::function<bool()>& reached, Instant deadline) {
  if (core_.life.user_code().runs_here()) return reached();  // What it waits for does not come before it returns.
  if (core_.hooks.pause) return wait_in_pauses(reached, deadline);
  Instant now = core_.now();
  Leader leader{.busy = now, .yielded = now, .turned = now};
  bool has_led = false;
  while (!reached()) {
    if (now >= deadline) return reached();
    const bool has_driver = driven();
    if ((has_driver && has_jobs()) || leading_.exchange(true, std::memory_order_seq_cst)) {
      wait_as_follower(reached, deadline);
      now = core_.now();
      leader.was_idle = leader.only_looked = false;
      continue;
    }
    if (has_driver) {
      lead_beside_driver(reached, deadline);
      now = core_.now();
      leader.was_idle = leader.only_looked = false;
      continue;
    }
    has_led = true;
    lock_to_lead(leader);
    now = clock_.now();
    const std::size_t work = turn(now);
    unlock();
    note_turn(leader, work, now);
    if (run_jobs()) leader.was_idle = false;
    if (work == 0) now = idle(leader, reached, now, deadline);
    leading_.store(false, std::memory_order_release);
  }
  if (has_led && leader.only_looked) spins_.found();
  news();  // Hands the lead to another waiter.
  return true;
}

void Lane::set_runner(Runner* runner, std::shared_ptr<RunnerBell> bell) {
  is_left_.store(false, std::memory_order_seq_cst);  // It was left by the runner before.
  {
    const base::MutexLock lock(bell_mutex_);
    bell_ = std::move(bell);
  }
  runner_.store(runner, std::memory_order_seq_cst);
}

void Lane::call_runner() {
  std::shared_ptr<RunnerBell> bell;
  {
    const base::MutexLock lock(bell_mutex_);
    bell = bell_;
  }
  if (bell != nullptr) bell->ring();
}

void Lane::lead_beside_driver(const std::function<bool()>& reached, Instant deadline) {
  if (!is_left_.exchange(true, std::memory_order_seq_cst)) {
    disarm();
    ring();  // From now on the driver looks by itself whether it is needed.
  }
  Instant now = core_.now();
  Leader leader{.busy = now, .yielded = now, .turned = now};
  const auto must_go_on = [&] { return reached() || has_jobs(); };
  bool is_reached = false;
  while (!(is_reached = reached()) && now < deadline && driven() && !has_jobs()) {
    lock_to_lead(leader);
    now = clock_.now();
    const std::size_t work = turn(now);
    unlock();
    note_turn(leader, work, now);
    if (work == 0) now = idle(leader, must_go_on, now, deadline);
  }
  if (is_reached && leader.only_looked) spins_.found();
  const Instant now_steady = Clock::steady().now();
  const bool is_drivers = has_jobs();
  led_until_.store(is_drivers ? now_steady - kLinger : now_steady, std::memory_order_relaxed);
  leading_.store(false, std::memory_order_seq_cst);
  if (is_drivers) call_runner();  // Until it comes nobody turns the lane.
  news();                         // Hands the lead to another waiter.
}

void Lane::note_looker(Instant now) {
  if (!driven()) return;
  note_led(now);
  // A thread that leads may sleep, and its doorbells stay armed. It has told the driver, or is about to.
  if (led() || is_left_.exchange(true, std::memory_order_seq_cst)) return;
  disarm();
  ring();
}

bool Lane::lacks_turn(Instant now) const {
  const bool is_awaited = sleeping_.load(std::memory_order_relaxed) || core_.hooks.pause;
  return !is_awaited && now - turned_ >= kLookerTurn;
}

bool Lane::is_left_to_waiters(Instant now) {
  // In the one order of all these: a waiter that begins to lead after this look finds the flag cleared, and tells.
  is_left_.store(false, std::memory_order_seq_cst);
  if (!led() && now >= led_until_.load(std::memory_order_relaxed) + kLinger) return false;
  leave_to_waiters();
  return true;
}

void Lane::wait_as_follower(const std::function<bool()>& reached, Instant deadline) {
  const Instant begun = core_.now();
  const Instant spin_until = spins_.may_spin(begun) ? begun + kSpinWindow : begun;
  for (int i = 0; !reached(); ++i) {
    base::cpu_relax();
    if ((i & 63) == 63 && core_.now() >= std::min(spin_until, deadline)) break;
  }
  if (reached() || (!driven() && !leading_.load(std::memory_order_relaxed))) return;
  followers_.fetch_add(1, std::memory_order_seq_cst);
  followers_mutex_.lock();
  (void)ended_.load(std::memory_order_seq_cst);  // After it `reached` sees what came before any news that missed us.
  if (!reached() && (driven() || leading_.load(std::memory_order_seq_cst))) {
    followers_wake_.wait_until(followers_mutex_, std::min(deadline, Clock::steady().now() + kFollowerNap));
  }
  followers_mutex_.unlock();
  followers_.fetch_sub(1, std::memory_order_relaxed);
}

void Lane::news() {
  // In the one order of all these: if this load misses a follower, its load of `ended_` comes later and finds the news.
  ended_.fetch_add(1, std::memory_order_seq_cst);
  if (followers_.load(std::memory_order_seq_cst) == 0) return;
  followers_mutex_.lock();
  followers_wake_.notify_all();
  followers_mutex_.unlock();
}

Result<int> Lane::event_fd() {
  lock();
  Status status;
  if (!timer_) {
    timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    status = timer_ ? epoll_->add(timer_.get(), EPOLLIN, 2) : base::errno_status("event_fd: timerfd_create", errno);
  }
  unlock();
  if (!status.ok()) return status;
  event_wanted_.store(true, std::memory_order_release);
  wake_.signal();  // The first poll arms it.
  return epoll_->fd();
}

void Lane::arm_event_fd() {
  fall_asleep();
  wake_.drain();
  event_armed_ = true;
  if (!may_sleep()) {
    wake_.signal();
    return;
  }
  const Instant next = next_moment();
  itimerspec when{};
  if (next != Instant::max()) {
    // From now on: the agent's clock need not be the kernel's.
    const std::int64_t ns = std::max<std::int64_t>((next - core_.now()).count(), 1);
    when.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace hawser::agent
