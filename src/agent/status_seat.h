#pragma once

// StatusSeat: an agent's place at the status socket of its process (agent/process_status.h). The host's lane looks
// whether somebody calls, before each sleep and every kLookEvery while it works, and answers without the lane's lock.
// The other seats do nothing.
//
// Thread rule: under the lane's lock, but for run_jobs, `woke`, `is_host`, `beaten_at`, `host` and `let_go_of`, which
// any thread may call. Lifetime: a part of its Core; between `open` and `close` its agent is in the roster.

#include <atomic>
#include <memory>
#include <string>

#include <hawser/status.h>

#include "agent/part.h"
#include "base/id128.h"

namespace hawser::agent {

class Core;
class ProcessStatus;

class StatusSeat final : public Part {
 public:
  static constexpr Duration kLookEvery = std::chrono::milliseconds(10);

  explicit StatusSeat(Core& core) : core_(core) {}

  /// Before the first turn.
  Status open(const std::string& folder);
  void close();
  /// The name of the socket's file beside the page; empty: there is none.
  std::string socket_name() const;

  std::size_t turn(Instant now) override;
  void run_jobs(Instant now) override;
  void describe(const Visitor&) const override {}
  /// The lane is turned: called once a second.
  void beat(Instant now);
  /// The lane is about to sleep. False: somebody calls, and is answered first.
  bool may_sleep();
  /// The lane sleeps no more.
  void woke();

  // For ProcessStatus.
  Core& core() const { return core_; }
  const base::Id128& incarnation() const;
  bool is_host() const { return is_host_.load(std::memory_order_acquire); }
  Instant beaten_at() const { return beaten_at_.load(std::memory_order_relaxed); }
  void host(int fd);
  void let_go_of(int fd);

 private:
  Core& core_;
  std::shared_ptr<ProcessStatus> process_;  ///< From `open` on, also after `close`.
  std::atomic<bool> is_host_{false};
  std::atomic<Instant> beaten_at_{Instant::min()};
  std::atomic<Instant> looked_at_{Instant::min()};
};

}  // namespace hawser::agent
