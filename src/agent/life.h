#pragma once

// Life: whether calls to an agent work. An agent is open, then it is closing, then it is closed. In a child that was
// forked while the agent was open it belongs to another process, and no lock of it may be taken.
//
// Thread rule: thread-safe. It never goes back to an earlier state.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "agent/fork_guard.h"
#include "agent/user_code.h"

namespace hawser::agent {

class Life {
 public:
  /// The agent belongs to this process.
  explicit Life(std::string agent);

  /// Good, or kInvalid because this is a forked child: the thread that held a lock at the fork does not exist there.
  Status not_forked(std::string_view call) const;
  /// Good, or kInvalid because this thread runs an inline handler in the middle of a turn of the agent: the call would
  /// wait for that turn.
  Status not_inline(std::string_view call) const;
  /// All of this, or kInvalid because somebody began to close the agent.
  Status usable(std::string_view call) const;

  /// In a child of the process that opened it: nothing works any more. Costs one load.
  bool disowned() const { return forks_ != forks_so_far(); }
  bool is_closing() const { return is_closing_.load(std::memory_order_acquire); }
  bool is_closed() const { return is_closed_.load(std::memory_order_seq_cst); }

  void begin_to_close() { is_closing_.store(true, std::memory_order_release); }
  UserCode& user_code() { return user_code_; }
  const UserCode& user_code() const { return user_code_; }

  /// Of a thread that ends it and one that leaves a submission, one sees the other.
  void end();

 private:
  const std::string agent_;
  const pid_t opener_;
  const std::uint32_t forks_ = watch_forks();
  std::atomic<bool> is_closing_{false};
  std::atomic<bool> is_closed_{false};
  UserCode user_code_;
};

}  // namespace hawser::agent
