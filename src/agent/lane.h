#pragma once

// The lane: one progress context of an agent. Whoever holds its lock moves the agent on: a submitting thread for a
// moment, a waiter, the caller of poll, or a driver's thread.
//
// Locking: `mutex_` is the lane's lock; ports, paths, sessions and slots below their line are touched under it only.
// Submitting threads never wait for it: when it is taken they leave the slot in the bounded ring `submissions_`.
// Sleeping: the leader arms the ports' doorbells, then sleeps in epoll; `wake` ends that.
// A waiter leads a driven lane, too: waking the driver, and being woken by it, would take longer than most waits. The
// driver keeps away from a lane that is left to waiters, looks at it from time to time, and takes it over once
// nobody has led it for kLinger. Some waiters do not lead: they look for what they wait for by themselves, under the
// lock, because turns would take longer than the wait (`note_looker`). The lane is left to them in the same way. They
// turn it each kLookerTurn, and the driver turns it whenever it looks at it.
// Where other programs want the cores, those who wait do not look for news: they sleep at once (base/spin_credit.h).
//
// Thread rule: thread-safe.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/lane_access.h"
#include "agent/left_over.h"
#include "agent/part.h"
#include "base/events.h"
#include "base/fd.h"
#include "base/mpsc_ring.h"
#include "base/mutex.h"
#include "base/recent_clock.h"
#include "base/spin.h"
#include "base/spin_credit.h"
#include "base/spin_window.h"
#include "base/status_page.h"
#include "base/yield_price.h"

namespace hawser::agent {

class Core;
class StatusSeat;
struct Slot;

inline constexpr std::size_t kSubmissionsMax = 8192;  ///< Slots waiting for the lane's holder; beyond: kBusy.
inline constexpr std::size_t kCancelsMax = 256;       ///< Beyond, the lane looks at all that is in flight.
inline constexpr Duration kSpinWindow = std::chrono::microseconds(50);
/// Up to which a waiter's window grows while what it waits for comes soon.
inline constexpr Duration kSpinWindowMax = std::chrono::microseconds(300);

/// So long after its last waiter a driver leaves a lane alone, whose doorbells are not armed meanwhile. While somebody
/// leads it without end, the driver looks ever less often, up to kLookLeftMax times this.
inline constexpr Duration kLinger = std::chrono::milliseconds(1);
inline constexpr int kLookLeftMax = 16;
/// A thread that calls into a lane again and again without a turn turns it so often, where nobody sleeps on it.
inline constexpr Duration kLookerTurn = std::chrono::microseconds(50);

/// Wakes a runner's thread for lanes that it leaves to waiters. These lanes share it, so that it outlives their calls.
struct RunnerBell {
  explicit RunnerBell(base::EventFd its_wake) : wake(std::move(its_wake)) {}

  base::EventFd wake;
  std::atomic<bool> called{false};  ///< Some such lane needs its runner now.

  void ring() {
    called.store(true, std::memory_order_seq_cst);
    wake.signal();
  }
};

/// Who runs a lane for its agent.
class Runner {
 public:
  /// The agent is closed: nothing of it is touched any more. Any thread but the runner's own.
  virtual void let_go(Core& core) = 0;

 protected:
  ~Runner() = default;
};

class Lane final : public LaneAccess {
 public:
  Lane(Core& core, const Clock& clock)
      : core_(core),
        is_by_steady_(&clock == &Clock::steady()),
        clock_(clock),
        submissions_(kSubmissionsMax),
        cancels_(kCancelsMax),
        left_over_(kLeftOverMax) {}
  Status open();
  /// Before the first turn: where turns and sleeps are shown. It outlives the lane's turns.
  void show_on(base::StatusPage& page) { page_ = &page; }
  /// Before the first turn: the agent's place at the status socket of its process. It outlives the lane's turns.
  void answer_on(StatusSeat& seat);
  /// Before the first turn. The part outlives the lane's turns.
  void add_part(Part& part) { parts_.push_back(&part); }

  // The lock. `lock` asks a spinning driver to give way. A thread that runs an inline handler has it already, from the
  // turn that runs the handler: `lock` and `unlock` change nothing there, and `try_lock` fails.
  bool try_lock() HAWSER_TRY_ACQUIRE(true, in_lane) HAWSER_NO_THREAD_SAFETY_ANALYSIS { return mutex_.try_lock(); }
  void lock() override HAWSER_ACQUIRE(in_lane);
  void unlock() override HAWSER_RELEASE(in_lane) HAWSER_NO_THREAD_SAFETY_ANALYSIS {
    if (!is_lent_) [[likely]]
      mutex_.unlock();
  }
  /// Under the lock: runs `code` of the user. Calls of it find the lock taken, by themselves.
  void run_for_user(const std::function<void()>& code) HAWSER_REQUIRES(in_lane);

  /// The time of a turn: at most a microsecond old, and cheap.
  Instant now() HAWSER_REQUIRES(in_lane) { return clock_.now(); }
  /// One bounded round of work. Returns how much was done.
  std::size_t turn(Instant now) HAWSER_REQUIRES(in_lane);
  /// Takes in what submitters left, at most so many; a turn does so by itself.
  std::size_t take_submissions(std::size_t most, Instant now) HAWSER_REQUIRES(in_lane);
  /// One turn if nobody else holds the lane.
  std::size_t try_turn();

  /// Leaves a slot for whoever holds the lane. False: full.
  bool leave(Slot* slot);
  /// Leaves a message or freed room. The next thread that sends under the lock takes it in first, so the messages of
  /// one thread keep their order. False: full.
  bool leave(LeftOver&& left) {
    const bool is_left = leave_quietly(std::move(left));
    if (is_left) tell_of_left();
    return is_left;
  }
  /// In two steps, for who holds a spin lock in the first.
  bool leave_quietly(LeftOver&& left) { return left_over_.try_push(std::move(left)); }
  void tell_of_left() {
    asked_.store(true, std::memory_order_release);
    wake();
  }
  std::size_t take_left_over(Instant now) HAWSER_REQUIRES(in_lane) { return take_left_over(now, {}); }
  /// The agent is closed: messages go nowhere any more, and what was to begin is refused.
  void refuse_left_over(const Status& refused, Instant now) HAWSER_REQUIRES(in_lane) { take_left_over(now, refused); }
  /// What was sent before, and left, goes before what this thread does next under the lock.
  void let_older_go_first() HAWSER_REQUIRES(in_lane) {
    if (left_over_.holds_before(left_over_.end())) [[unlikely]]
      take_left_over(now());
  }
  /// That slot's `cancel_asked` is set. It may be over, and used anew, when the lane looks.
  void ask_cancel(Slot* slot) {
    if (!cancels_.try_push(std::move(slot))) must_look_at_all_.store(true, std::memory_order_release);
    asked_.store(true, std::memory_order_release);
    wake();
  }

  /// Ends the leader's sleep. Cheap when nobody sleeps.
  void wake() override {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_relaxed)) ring();
  }
  /// So often a thread was woken that slept on the lane, or would have. Each time is a system call.
  std::uint64_t rings() const { return rings_.load(std::memory_order_relaxed); }
  /// So often a thread was about to sleep on it. Each time it may ask peers to ring.
  std::uint64_t armings() const { return armings_.load(std::memory_order_relaxed); }

  /// Ends the sleep of whoever sleeps on the lane, armed or not: it arms the lane anew.
  void nudge() const { wake_.signal(); }

  /// Makes progress (or waits for the driver to) until `reached` is true or `deadline` passed. Returns what `reached`
  /// says last. `reached` must be cheap, thread-safe, and become true only by what a lane does or by `news`.
  bool wait_until(const std::function<bool()>& reached, Instant deadline) override HAWSER_EXCLUDES(in_lane);
  /// A thread waits, and looks for what it waits for by itself instead of turning the lane. So a driven lane is left to
  /// waiters until kLinger from now on: `wake` does not wake the driver meanwhile.
  void note_looker(Instant now) HAWSER_REQUIRES(in_lane);
  /// A call found at once what it would have waited for. If the lane is left to waiters, it stays left until kLinger
  /// from now on.
  void note_found(Instant now) HAWSER_REQUIRES(in_lane) {
    if (is_claimed()) note_led(now);
  }
  /// What yields of threads that wait for the lane, or for what other processes write, cost on their cores.
  base::YieldPrice& yields() { return yields_; }
  /// Whether those threads may look for news, or sleep at once. By the agent's clock.
  base::SpinCredit& spins() { return spins_; }
  /// Nobody has turned the lane for kLookerTurn, and nobody sleeps on it who would be woken to do so.
  bool lacks_turn(Instant now) const HAWSER_REQUIRES(in_lane);

  // For drivers.
  /// Ordered with `Core::is_closed`: of one who closes and one who attaches, one sees the other.
  void set_runner(Runner* runner, std::shared_ptr<RunnerBell> bell);
  Runner* runner() const { return runner_.load(std::memory_order_seq_cst); }
  /// Somebody waits, and turns and sleeps for all.
  bool led() const { return leading_.load(std::memory_order_seq_cst); }
  /// Somebody sleeps on it, or on several with it, whom `wake` wakes.
  bool sleeps() const { return sleeping_.load(std::memory_order_relaxed); }
  /// Something waits to be done without the lane's lock.
  bool has_jobs() const;
  /// A waiter has told since the driver has it that it does the lane's work.
  bool is_claimed() const { return is_left_.load(std::memory_order_seq_cst); }
  /// Whether the driver goes on leaving it alone. If not, it is the driver's.
  bool is_left_to_waiters(Instant now);
  /// The driver has stopped turning a lane that is led, and looks again by itself.
  void leave_to_waiters() { is_left_.store(true, std::memory_order_seq_cst); }
  bool driven() const { return runner_.load(std::memory_order_acquire) != nullptr; }
  bool contended() const { return contenders_.load(std::memory_order_relaxed) > 0; }
  /// Sleeps until something is to be done, at most until `deadline`. The caller leads and does not hold the lock.
  void rest(Instant deadline);
  /// For sleepers of several lanes: arms the lane; false when there is work. `disarm` when awake again.
  bool arm(Instant* next_deadline);
  void disarm();
  int sleep_fd() const { return epoll_->fd(); }
  void drain_wake() const { wake_.drain(); }
  /// A descriptor for the user's own loop; from its first use on the lane arms itself whenever it has nothing to do.
  Result<int> event_fd();
  Status watch_port(int fd);
  void unwatch(int fd) const { (void)epoll_->remove(fd); }
  /// Only system calls: runs in a forked child.
  void disown_after_fork();

  /// Something that waiters may wait for happened.
  void news() override;
  /// The same, by no turn of the lane: a leader that sleeps, or is about to, looks again, too.
  void news_from_outside() override {
    asked_.store(true, std::memory_order_release);
    wake();
    news();
  }
  /// Grows whenever it did.
  std::uint64_t ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  void ring() {
    rings_.fetch_add(1, std::memory_order_relaxed);
    wake_.signal();
  }
  /// `now` is by the agent's clock.
  void note_led(Instant now) {
    led_until_.store(is_by_steady_ ? now : Clock::steady().now(), std::memory_order_relaxed);
  }
  bool is_asked() const { return asked_.load(std::memory_order_relaxed); }
  std::size_t take_what_was_left(Instant now) HAWSER_REQUIRES(in_lane);
  std::size_t take_left_over(Instant now, const Status& refused) HAWSER_REQUIRES(in_lane);
  std::size_t take_cancels(Instant now) HAWSER_REQUIRES(in_lane);
  bool nothing_new(Instant now) HAWSER_REQUIRES(in_lane);
  bool may_sleep() HAWSER_REQUIRES(in_lane);
  /// From now on `wake` signals. `disarm` ends it.
  void fall_asleep() HAWSER_REQUIRES(in_lane);
  bool wait_in_pauses(const std::function<bool()>& reached, Instant deadline);
  /// A thread that leads, as it knows its wait.
  struct Leader {
    Instant busy, yielded;    ///< When its last turn did something, and when it last yielded.
    Instant turned;           ///< When its last turn began,
    bool was_idle = false;    ///< in which, and since which, it did nothing but look.
    bool only_looked = true;  ///< It has neither slept nor lost its core for long.
  };
  void lock_to_lead(Leader& leader) HAWSER_ACQUIRE(in_lane);
  void note_turn(Leader& leader, std::size_t work, Instant now);
  /// Its turn found nothing: it sleeps, yields, or does nothing. Returns the time.
  Instant idle(Leader& leader, const std::function<bool()>& must_go_on, Instant now, Instant deadline);
  /// Leads a driven lane. Jobs are left to the driver, and end it.
  void lead_beside_driver(const std::function<bool()>& reached, Instant deadline);
  void wait_as_follower(const std::function<bool()>& reached, Instant deadline);
  void arm_event_fd() HAWSER_REQUIRES(in_lane);
  /// When there is something to do though nothing comes.
  Instant next_moment() HAWSER_REQUIRES(in_lane);
  /// The runner's thread looks at this lane now, not at the next time that it would.
  void call_runner();
  /// What the turn left to be done without the lock. Whether there was any.
  bool run_jobs();

  Core& core_;
  base::StatusPage* page_ = nullptr;
  StatusSeat* seat_ = nullptr;
  std::vector<Part*> parts_;
  base::Mutex mutex_;
  bool is_lent_ = false;     ///< Under the lock: its holder runs code of the user.
  const bool is_by_steady_;  ///< The agent's clock is that of drivers.
  base::RecentClock clock_;  ///< Of turns. Under the lock,
  Instant turned_;           ///< and when the last one was.
  std::atomic<int> contenders_{0};
  std::atomic<Instant> led_until_{Instant()};  ///< When a driven lane was last left to a waiter, by Clock::steady().
  base::MpscRing<Slot*> submissions_;
  base::MpscRing<Slot*> cancels_;
  base::MpscRing<LeftOver> left_over_;
  /// Something was left in one of these. Set after it is there, and cleared before the holder looks.
  std::atomic<bool> asked_{false};
  std::atomic<bool> must_look_at_all_{false};  ///< More were cancelled than the ring holds.
  /// The driver will look by itself, within kLinger: nobody has to tell it that a waiter leads.
  std::atomic<bool> is_left_{false};
  std::atomic<bool> leading_{false};  ///< A waiter leads: turns and sleeps are its.
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> event_wanted_{false};
  bool event_armed_ = false;              ///< Doorbells are armed for event_fd(). Under the lock.
  std::atomic<Runner*> runner_{nullptr};  ///< Null: nobody but those who wait or poll.
  base::Mutex bell_mutex_;
  std::shared_ptr<RunnerBell> bell_ HAWSER_GUARDED_BY(bell_mutex_);  ///< The runner's.

  base::SpinWindow spin_{kSpinWindow, kSpinWindowMax};  ///< The leader's.
  base::YieldPrice yields_;
  base::SpinCredit spins_;
  std::unique_ptr<base::Epoll> epoll_;
  base::EventFd wake_{base::Fd()};
  base::Fd timer_;  ///< Only once event_fd() was asked for.

  std::atomic<std::uint64_t> ended_{0};
  std::atomic<std::uint64_t> rings_{0};
  std::atomic<std::uint64_t> armings_{0};
  std::atomic<int> followers_{0};
  base::Mutex followers_mutex_;
  base::CondVar followers_wake_;
};

}  // namespace hawser::agent
