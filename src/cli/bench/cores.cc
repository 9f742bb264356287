#include "cli/bench/cores.h"

#include <sched.h>

namespace hawser::cli::bench {
namespace {

cpu_set_t allowed_at_start() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  return set;
}

// Read before anything is pinned.
const cpu_set_t& allowed() {
  static const cpu_set_t set = allowed_at_start();
  return set;
}

}  // namespace

std::array<int, 2> bench_cores() {
  std::array<int, 2> cores = {-1, -1};
  std::size_t found = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && found < cores.size(); ++cpu) {
    if (CPU_ISSET(cpu, &allowed())) cores[found++] = cpu;
  }
  return cores;
}

bool pin_to(int core) {
  (void)allowed();
  if (core < 0) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

void unpin() { sched_setaffinity(0, sizeof(cpu_set_t), &allowed()); }

Unpinned::Unpinned() {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof(before_), &before_);
  unpin();
}

Unpinned::~Unpinned() { sched_setaffinity(0, sizeof(before_), &before_); }

}  // namespace hawser::cli::bench
