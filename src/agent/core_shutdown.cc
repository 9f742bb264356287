// How an agent closes.
//
// A close that runs out of time while somebody still uses a region leaves the ports open: they alone can tell when that
// ends, and the next call asks them. Once no region is in use the rest goes, whether peers heard of it or not.

#include <algorithm>
#include <utility>

#include "agent/core.h"
#include "agent/fork_guard.h"

namespace hawser::agent {

Status Core::close(Duration timeout) { return close(timeout, Leave::kNothing); }

void Core::close_for_good(Duration timeout) {
  // Its caller is the last to use the agent; a region's handle reports what is left to others.
  static_cast<void>(close(timeout, Leave::kWhatIsUsed).ok());
}

Status Core::close(Duration timeout, Leave leave) {
  if (disowned()) return usable("close");
  life.begin_to_close();
  const Instant deadline = now() + timeout;
  const auto is_free = [this] { return !is_being_closed_.load(std::memory_order_acquire); };
  while (!is_closed() || !is_unpublished_.load(std::memory_order_acquire)) {
    if (!is_being_closed_.exchange(true, std::memory_order_acq_rel)) {
      Status status = close_now(deadline, leave);
      is_being_closed_.store(false, std::memory_order_release);
      lane.news();
      return status;
    }
    if (!lane.wait_until(is_free, deadline)) {
      return Status(Code::kTimedOut, "close: another call closes agent '" + options.name + "' and is not done");
    }
  }
  return {};
}

Status Core::close_now(Instant deadline, Leave leave) {
  if (!is_unpublished_.load(std::memory_order_relaxed)) {
    is_unpublished_.store(unpublish(deadline), std::memory_order_release);
  }
  if (is_closed()) return {};
  if (!std::exchange(has_begun_to_close_, true)) {
    lane.lock();
    lane.take_left_over(now());  // What was sent and submitted before this call is in there.
    lane.take_submissions(kSubmissionsMax, now());
    engine.begin_close(now());
    lane.unlock();
  }
  Status status = release_everything(deadline);
  const RegionBook::Regions booked = region_book.all();
  const bool is_used = std::ranges::any_of(
      booked, [](const auto& region) { return region->state.load(std::memory_order_acquire) != RegionState::kClosed; });
  if (is_used && leave == Leave::kNothing) return status;
  shut_down();
  return status;
}

void Core::shut_down() {
  metrics = metrics::Entry();  // Before the lane's lock: a scrape that is under way takes it.
  lane.lock();
  const RegionCloser::Abandoned abandoned = region_closer.abandon();
  engine.shut_down(now());
  status_teller.close();
  life.end();
  refuse_what_is_left();
  lane.unlock();
  if (Runner* const runner = lane.runner()) runner->let_go(*this);
  region_closer.release(abandoned);
  lane.wake();  // For who waits for what never comes now.
  lane.news();
  forget_core(this);
  peer_book.forget_all();
}

/// Of one who closes and one who leaves a submission, one sees the other.
void Core::refuse_what_is_left() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  lane.take_submissions(kSubmissionsMax, now());
}

Status Core::release_everything(Instant deadline) {
  const Status status = region_closer.close(region_book.all(), std::max(Duration::zero(), deadline - now()));
  bool quiet = false;
  while (!quiet) {
    lane.lock();
    lane.turn(now());
    quiet = engine.closed();
    lane.unlock();
    if (quiet || now() >= deadline) break;
    lane.wait_until([] { return false; }, std::min(deadline, now() + std::chrono::milliseconds(1)));
  }
  if (quiet || !status.ok()) return status;
  return Status(Code::kTimedOut, "close: backends of agent '" + options.name + "' were not quiet by the deadline")
      .with_advice("nobody touches its memory any more; peers may not have heard of its end");
}

}  // namespace hawser::agent
