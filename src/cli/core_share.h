#pragma once

// CoreShare: which processors of a host one of its ranks runs on, where `hawser run --bind-to core` divides them among
// the ranks. Two ranks share no core.
//
// Thread rule: values and pure functions; processors() asks the kernel.

#include <sched.h>

#include <cstdint>
#include <span>
#include <vector>

#include <hawser/status.h>

namespace hawser::cli {

/// As the kernel numbers them (/sys/devices/system/cpu/cpuN/topology).
struct Processor {
  int number = 0;
  int package = 0;
  int core = 0;  ///< Within the package. Hardware threads of one core have the same.
};

/// A rank among those of its host.
struct LocalPlace {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
};

/// Those that this process may use. Where the kernel tells no cores, each is one of its own.
std::vector<Processor> processors();
/// The share of one rank: whole cores that lie together, as many for each as there are for all, and one more for the
/// first ones. kInvalid: there are fewer cores than ranks.
Result<cpu_set_t> share_of(std::span<const Processor> all, LocalPlace place);

}  // namespace hawser::cli
