#include "runtime/lane_jobs.h"

#include <utility>

namespace hawser::runtime {

bool LaneJobs::run(Instant now) {
  if (soon_.empty() || std::exchange(is_running_, true)) return false;  // Below, on the same thread: it goes on there.
  while (!soon_.empty()) {
    const std::vector<Job> jobs = std::exchange(soon_, {});
    for (const Job& job : jobs) job(now);
  }
  is_running_ = false;
  return true;
}

std::size_t LaneJobs::turn(Instant now) {
  std::size_t done = later_.size();
  for (const Job& job : std::exchange(later_, {})) job(now);
  for (std::size_t i = 0; i < lookouts_.size();) {
    Lookout* const next = lookouts_[i];
    done += next->look(now);  // It may go.
    if (i < lookouts_.size() && lookouts_[i] == next) ++i;
  }
  return done;
}

bool LaneJobs::prepare_sleep() {
  std::erase_if(lookouts_, [](Lookout* lookout) { return lookout->ask(); });
  return lookouts_.empty();
}

}  // namespace hawser::runtime
