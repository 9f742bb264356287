#pragma once

// OwnCore: keeps this process, with all its threads, on a core of its own among the ranks of its host. Else two ranks
// that share a core for a while, because another program is busy on the other one, take several times as long.
//
// Thread rule: one thread. Lifetime: the threads are where they were when it is gone.

#include <sched.h>

#include <cstdint>

namespace hawser::cli::coll {

class OwnCore {
 public:
  /// Where there are fewer cores than ranks, every thread stays where it is.
  OwnCore(std::uint32_t local_rank, std::uint32_t local_size);
  OwnCore(const OwnCore&) = delete;
  OwnCore& operator=(const OwnCore&) = delete;
  ~OwnCore();

  bool is_kept() const { return is_kept_; }

 private:
  cpu_set_t before_;
  bool is_kept_ = false;
};

}  // namespace hawser::cli::coll
