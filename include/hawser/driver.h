#pragma once

// A Driver is threads that run agents, for users without a loop of their own. Without one, `poll` and `wait` of the
// agent make progress on the caller's thread.
//
// Thread rule: thread-safe. Lifetime: agents must be detached (or closed) before the driver goes; its destructor joins.

#include <memory>

#include <hawser/export.h>
#include <hawser/status.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

class Agent;

struct DriverOptions {
  unsigned threads = 1;
  Duration spin = std::chrono::microseconds(50);  ///< How long a lane is polled before its thread sleeps in the kernel.
};

class HAWSER_API Driver {
 public:
  static Result<Driver> start(const DriverOptions& options = {});
  Driver(Driver&&) noexcept;
  Driver& operator=(Driver&&) noexcept;
  ~Driver();

  /// Runs `agent` until it is closed or detached.
  Status attach(Agent& agent);
  Status detach(Agent& agent);

  struct Impl;

 private:
  explicit Driver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

HAWSER_NAMESPACE_END
