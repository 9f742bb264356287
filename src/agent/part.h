#pragma once

// Part: what a lane turns beside its ports and sessions. A part pulls from what lies below it; nobody calls it back.
//
// Thread rule: under the lane's lock, but for run_jobs. Lifetime: it is there as long as the lane is.

#include <cstddef>

#include <hawser/time.h>

#include "agent/describe.h"

namespace hawser::agent {

class Part {
 public:
  /// Does what is due and never waits. Called when `next_deadline` has come. Returns how much was done.
  virtual std::size_t turn(Instant now) = 0;
  /// Instant::max(): never, unless something happens to it.
  virtual Instant next_deadline() const = 0;
  virtual void describe(const Visitor& visitor) const = 0;

  /// Something waits that may take a while: the thread that turned the lane does it without the lane's lock. Asked
  /// after each turn, so it is cheap.
  virtual bool has_jobs() const = 0;
  virtual void run_jobs(Instant now) = 0;

 protected:
  ~Part() = default;
};

}  // namespace hawser::agent
