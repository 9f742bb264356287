#pragma once

// Part: what a lane turns beside its ports and sessions. A part pulls from what lies below it; nobody calls it back.
//
// A lane that waits for a message turns millions of times a second, so what it asks each time (`next_deadline`,
// `has_jobs`) is two words of the part's, no call.
//
// Thread rule: under the lane's lock, but for has_jobs and run_jobs, which Clang checks (lane_access.h). Lifetime: it
// is there as long as the lane is.

#include <atomic>
#include <cstddef>

#include <hawser/time.h>

#include "agent/describe.h"
#include "agent/lane_access.h"

namespace hawser::agent {

class Part {
 public:
  /// Instant::max(): never, unless something happens to it.
  Instant next_deadline() const { return next_.load(std::memory_order_relaxed); }
  /// Does what is due and never waits. Called when `next_deadline` has come. Returns how much was done.
  virtual std::size_t turn(Instant now) HAWSER_REQUIRES(in_lane) = 0;
  virtual void describe(const Visitor& visitor) const HAWSER_REQUIRES(in_lane) = 0;

  /// Something waits that may take a while: the thread that turned the lane does it without the lane's lock.
  bool has_jobs() const { return has_jobs_.load(std::memory_order_relaxed); }
  virtual void run_jobs(Instant now) HAWSER_EXCLUDES(in_lane) = 0;

 protected:
  ~Part() = default;
  void set_next(Instant next) { next_.store(next, std::memory_order_relaxed); }
  void set_jobs(bool has_jobs) { has_jobs_.store(has_jobs, std::memory_order_relaxed); }
  /// Of threads that would do them at the same time one gets true.
  bool take_jobs() { return has_jobs_.exchange(false, std::memory_order_acq_rel); }

 private:
  std::atomic<Instant> next_{Instant::max()};
  std::atomic<bool> has_jobs_{false};
};

}  // namespace hawser::agent
