#pragma once

// Which cores the bench's two processes run on.

#include <sched.h>

#include <array>

namespace hawser::cli::bench {

/// The first two cores that this process may use; the second is -1 when there is but one.
std::array<int, 2> bench_cores();
/// Keeps the calling thread on one core. False when the system refuses.
bool pin_to(int core);
/// Lets the calling thread use all of them again.
void unpin();

/// The calling thread, and those that it starts, may use all cores while this lives; then it is where it was.
class Unpinned {
 public:
  Unpinned();
  Unpinned(const Unpinned&) = delete;
  Unpinned& operator=(const Unpinned&) = delete;
  ~Unpinned();

 private:
  cpu_set_t before_;
};

}  // namespace hawser::cli::bench
