#include "agent/shutdown.h"

#include <utility>

#include "base/try.h"

namespace hawser::agent {

Status Shutdown::close(Duration timeout) { return close(timeout, Leave::kNothing); }

void Shutdown::close_for_good(Duration timeout) {
  // Its caller is the last to use the agent; a region's handle reports what is left to others.
  static_cast<void>(close(timeout, Leave::kWhatIsUsed).ok());
}

Status Shutdown::close(Duration timeout, Leave leave) {
  if (life_.disowned()) return life_.not_forked("close");
  HAWSER_TRY(life_.not_inline("close"));
  life_.begin_to_close();
  const Instant deadline = clock_.now() + timeout;
  const auto is_free = [this] { return !is_busy_.load(std::memory_order_acquire); };
  while (!life_.is_closed() || !is_unpublished_.load(std::memory_order_acquire)) {
    if (!is_busy_.exchange(true, std::memory_order_acq_rel)) {
      Status status = go_on(deadline, leave);
      is_busy_.store(false, std::memory_order_release);
      lane_.news();
      return status;
    }
    if (!lane_.wait_until(is_free, deadline)) {
      return Status(Code::kTimedOut, "close: another call closes agent '" + agent_ + "' and is not done");
    }
  }
  return {};
}

Status Shutdown::go_on(Instant deadline, Leave leave) {
  if (!is_unpublished_.load(std::memory_order_relaxed)) {
    is_unpublished_.store(steps_.unpublish(deadline), std::memory_order_release);
  }
  if (life_.is_closed()) return {};
  if (!std::exchange(has_begun_, true)) steps_.begin();
  Status status = steps_.release(deadline);
  if (leave == Leave::kNothing && steps_.is_used()) return status;
  steps_.finish();
  return status;
}

}  // namespace hawser::agent
