#pragma once

// Child: the second process of demo and bench, this program again in another role, here or on another host. It dies
// with its parent, and its own death is told with who and why.
//
// Thread rule: one thread. Lifetime: the destructor ends the process and reaps it.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/fd.h"

namespace hawser::cli {

class Child {
 public:
  /// Starts `hawser <command> --role <role> --control-fd N`, with `control` as its descriptor N.
  static Result<Child> start(const std::string& command, const std::string& role, const base::Fd& control);
  /// Starts a command that leads to another host, with `control` as its standard input and output. The process there
  /// ends with its line.
  static Result<Child> start_far(const std::vector<std::string>& command, const std::string& role,
                                 const base::Fd& control);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  /// Good while it runs. kDisconnected: how it ended ("was killed by signal 9 (Killed)").
  Status running();
  /// Waits for its end. Good when it exited with 0.
  Status wait(Duration timeout);

 private:
  Child(std::string role, pid_t pid) : role_(std::move(role)), pid_(pid) {}
  void reap(int wait_status);

  std::string role_;
  pid_t pid_ = -1;
  std::optional<Status> ended_;
};

}  // namespace hawser::cli
