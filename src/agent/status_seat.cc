#include "agent/status_seat.h"

#include "agent/core.h"
#include "agent/process_status.h"
#include "base/try.h"

namespace hawser::agent {

Status StatusSeat::open(const std::string& folder) {
  beaten_at_.store(core_.now(), std::memory_order_relaxed);
  HAWSER_TRY_ASSIGN(process_, ProcessStatus::join(folder, *this));
  core_.lane.answer_on(*this);
  return {};
}

void StatusSeat::close() {
  set_next(Instant::max());
  if (process_ != nullptr) process_->leave(*this);
}

std::string StatusSeat::socket_name() const { return process_ ? process_->socket_name() : std::string(); }

const base::Id128& StatusSeat::incarnation() const { return core_.identity.incarnation; }

void StatusSeat::host(int fd) {
  is_host_.store(true, std::memory_order_release);
  set_next(Instant::min());
  // Where the kernel refuses that, callers are answered while the lane works, and at each of its status page's turns.
  (void)core_.lane.watch_port(fd);
}

void StatusSeat::let_go_of(int fd) {
  is_host_.store(false, std::memory_order_release);
  core_.lane.unwatch(fd);
}

std::size_t StatusSeat::turn(Instant now) {
  if (!is_host()) {
    set_next(Instant::max());
    return 0;
  }
  set_next(now + kLookEvery);
  looked_at_.store(now, std::memory_order_relaxed);
  if (process_->wants_service(now)) set_jobs(true);
  return 0;
}

void StatusSeat::run_jobs(Instant now) {
  if (!take_jobs()) return;
  process_->serve(now);
  set_next(Instant::min());  // The next turn looks whether there is more to do.
}

void StatusSeat::beat(Instant now) {
  if (process_ == nullptr) return;
  beaten_at_.store(now, std::memory_order_relaxed);
  process_->beat(*this, now);
}

bool StatusSeat::may_sleep() {
  if (!is_host()) return true;
  const Instant now = core_.now();
  looked_at_.store(now, std::memory_order_relaxed);
  if (process_->wants_service(now)) {
    set_jobs(true);
    return false;
  }
  set_next(process_->due());
  return true;
}

void StatusSeat::woke() {
  if (is_host()) set_next(looked_at_.load(std::memory_order_relaxed) + kLookEvery);
}

}  // namespace hawser::agent
