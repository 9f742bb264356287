#pragma once

// ProcessStatus: the status socket of this process in one folder, and the agents that it tells of.
//
// A process has one socket however many agents it has: two descriptors, and none for each agent. One agent, the host,
// has the socket's epoll in its lane's, so whoever turns that lane answers for all. Nobody waits for a lane's lock: an
// agent whose lane is taken is asked again a millisecond later. Where nobody turns the host's lane any more, an agent
// whose lane is turned becomes the host within kHostPatience and a second.
//
// Locks, in this order: a lane's lock, the registry's, `mutex_`. The answers, which have `mutex_`, only try lanes.
//
// Thread rule: thread-safe; `join`, `leave`, `beat` and `wants_service` under the lane's lock of their agent, or before
// its first turn. Lifetime: the last agent that leaves takes the socket with it.

#include <atomic>
#include <memory>
#include <string>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/status_desk.h"
#include "agent/status_roster.h"
#include "base/mutex.h"

namespace hawser::agent {

class StatusSeat;

class ProcessStatus {
 public:
  static constexpr Duration kHostPatience = std::chrono::milliseconds(2500);

  /// Errors: those of StatusDesk::open.
  static Result<std::shared_ptr<ProcessStatus>> join(const std::string& folder, StatusSeat& seat);
  void leave(StatusSeat& seat);
  /// The name of the socket's file in the folder.
  const std::string& socket_name() const { return socket_name_; }

  /// That agent's lane is turned. It may become the host.
  void beat(StatusSeat& seat, Instant now);
  /// For the host: whether `serve` has something to do.
  bool wants_service(Instant now) const { return now >= due() || desk_for_host_->has_news(); }
  Instant due() const { return due_.load(std::memory_order_relaxed); }
  /// One round, unless another thread is at it. Without any lane's lock.
  void serve(Instant now);

 private:
  class Registry;

  explicit ProcessStatus(std::string folder) : folder_(std::move(folder)) {}
  Status open_desk();
  void move_host(StatusSeat* to) HAWSER_REQUIRES(mutex_);
  StatusSeat* liveliest() const HAWSER_REQUIRES(mutex_);

  const std::string folder_;
  std::string socket_name_;
  base::Mutex mutex_;
  StatusRoster roster_ HAWSER_GUARDED_BY(mutex_);
  std::unique_ptr<StatusDesk> desk_ HAWSER_GUARDED_BY(mutex_);
  const StatusDesk* desk_for_host_ = nullptr;  ///< The same. It is there while somebody has joined.
  StatusSeat* host_ HAWSER_GUARDED_BY(mutex_) = nullptr;
  std::atomic<Instant> host_beat_{Instant::min()};
  std::atomic<Instant> due_{Instant::max()};
};

}  // namespace hawser::agent
