#include "agent/process_status.h"

#include <unistd.h>

#include <map>
#include <utility>

#include "agent/core.h"
#include "agent/status_answers.h"
#include "agent/status_seat.h"
#include "base/id128.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr std::size_t kNameDigits = 16;  // Of the socket: its path must be no longer than a Unix socket's may be.

}  // namespace

/// Those of one process. A child gets its own: in the parent's a lock may be held by a thread that the child lacks.
class ProcessStatus::Registry {
 public:
  static Registry& here() {
    static std::atomic<Registry*> current{nullptr};
    Registry* known = current.load(std::memory_order_acquire);
    while (known == nullptr || known->process_ != ::getpid()) {
      auto* fresh = new Registry;  // It stays: agents may close in static destructors.
      if (current.compare_exchange_strong(known, fresh)) return *fresh;
      delete fresh;
    }
    return *known;
  }

  base::Mutex mutex;
  std::map<std::string, std::shared_ptr<ProcessStatus>, std::less<>> by_folder HAWSER_GUARDED_BY(mutex);

 private:
  const pid_t process_ = ::getpid();
};

Result<std::shared_ptr<ProcessStatus>> ProcessStatus::join(const std::string& folder, StatusSeat& seat) {
  Registry& registry = Registry::here();
  const base::MutexLock registry_lock(registry.mutex);
  std::shared_ptr<ProcessStatus>& known = registry.by_folder[folder];
  if (known == nullptr) {
    std::shared_ptr<ProcessStatus> made(new ProcessStatus(folder));
    if (Status status = made->open_desk(); !status.ok()) {
      registry.by_folder.erase(folder);
      return status;
    }
    known = std::move(made);
  }
  const base::MutexLock lock(known->mutex_);
  known->roster_.add(seat.incarnation(), seat.core());
  if (known->host_ == nullptr) known->move_host(&seat);
  return known;
}

Status ProcessStatus::open_desk() {
  const base::MutexLock lock(mutex_);
  const std::string name = base::to_hex(base::random_id128()).substr(0, kNameDigits);
  HAWSER_TRY_ASSIGN(desk_, StatusDesk::open(folder_, name, [this](std::string_view request) {
                      // The desk calls in `serve`, which has the mutex.
                      return [&]() HAWSER_NO_THREAD_SAFETY_ANALYSIS { return answer_to(request, roster_); }();
                    }));
  desk_for_host_ = desk_.get();
  socket_name_ = desk_->path().substr(desk_->path().rfind('/') + 1);
  return {};
}

void ProcessStatus::leave(StatusSeat& seat) {
  Registry& registry = Registry::here();
  const base::MutexLock registry_lock(registry.mutex);
  const base::MutexLock lock(mutex_);
  roster_.remove(seat.incarnation());
  if (host_ == &seat) move_host(liveliest());
  if (roster_.size() > 0) return;
  desk_.reset();
  registry.by_folder.erase(folder_);
}

void ProcessStatus::beat(StatusSeat& seat, Instant now) {
  if (seat.is_host()) {
    host_beat_.store(now, std::memory_order_relaxed);
    return;
  }
  const Instant last = host_beat_.load(std::memory_order_relaxed);
  if (last != Instant::min() && now - last < kHostPatience) return;
  if (!mutex_.try_lock()) return;  // Somebody serves, so there is a host.
  move_host(&seat);
  mutex_.unlock();
}

StatusSeat* ProcessStatus::liveliest() const {
  StatusSeat* found = nullptr;
  for (const auto& [incarnation, core] : roster_.all()) {
    StatusSeat& seat = core->status_teller.seat();
    if (found == nullptr || seat.beaten_at() > found->beaten_at()) found = &seat;
  }
  return found;
}

void ProcessStatus::move_host(StatusSeat* to) {
  if (host_ != nullptr) host_->let_go_of(desk_->fd());
  host_ = to;
  if (to == nullptr) return;
  host_beat_.store(to->beaten_at(), std::memory_order_relaxed);
  to->host(desk_->fd());
}

void ProcessStatus::serve(Instant now) {
  if (!mutex_.try_lock()) return;
  if (desk_ != nullptr) due_.store(desk_->serve(now), std::memory_order_relaxed);
  mutex_.unlock();
}

}  // namespace hawser::agent
