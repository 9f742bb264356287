#pragma once

// LaneJobs: what the runtime does in the lane later: jobs before the lane is given up, jobs of the next turn, and looks
// at memory that others write.
//
// Thread rule: under the lane's lock. A job or a look may add and remove others.

#include <cstddef>
#include <functional>
#include <vector>

#include <hawser/time.h>

#include "runtime/lookout.h"

namespace hawser::runtime {

class LaneJobs {
 public:
  using Job = std::function<void(Instant now)>;

  /// Runs it before the lane is given up: ends of operations begin others by it.
  void run_soon(Job job) { soon_.push_back(std::move(job)); }
  /// The same in the next turn: what takes long does a part of it in each.
  void run_later(Job job) { later_.push_back(std::move(job)); }
  /// It looks in each turn from now on, until it has asked the others to ring. Not twice at once.
  void watch(Lookout& lookout) { lookouts_.push_back(&lookout); }
  void unwatch(Lookout& lookout) { std::erase(lookouts_, &lookout); }

  /// Whether the next turn has something to do.
  bool wants_turn() const { return !later_.empty() || !lookouts_.empty(); }
  /// Runs what is to run soon, and what that adds. False: there was nothing.
  bool run(Instant now);
  /// A turn of the lane: later jobs and looks. Returns how much was done.
  std::size_t turn(Instant now);
  /// A lookout that has asked does not look any more. False: some look on.
  bool prepare_sleep();

 private:
  std::vector<Job> soon_, later_;
  std::vector<Lookout*> lookouts_;
  bool is_running_ = false;
};

}  // namespace hawser::runtime
