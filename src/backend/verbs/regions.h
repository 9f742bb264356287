#pragma once

// Regions: the agent's regions as registered with each device of its NICs.
//
// A region in host memory is registered for itself, exactly its range. One in GPU memory shares the registration of its
// allocation with the others there (regions_gpu.h). A region that one port cannot register is registered with none.
//
// Thread rule: thread-safe; `add` may take long and holds no lock meanwhile that `remove` takes.
// Lifetime: shared by the backend and its port; holds the registrations.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/region_table.h"
#include "backend/verbs/nic.h"
#include "backend/verbs/regions_gpu.h"
#include "backend/verbs/registration_pages.h"
#include "backend/verbs/segments_mlx5.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

struct RegionsOptions {
  bool relaxed_ordering = false;
  unsigned threads = 1;                                ///< That register a large region, with several NICs at a time.
  std::uint64_t large_bytes = std::uint64_t{1} << 30;  ///< From here on a region is large.
  hawser::SegmentProvider segments = {};               ///< May be empty.
  std::shared_ptr<Mlx5> mlx5 = {};                     ///< For keys over whole segments; may be null.
  std::string sysfs_root = "/sys";
  /// The NUMA node of memory that is present; -1: several, or not known.
  std::function<int(std::uintptr_t address, std::size_t size)> node_of = numa_node_of;
};

class Regions {
 public:
  Regions(std::vector<std::shared_ptr<Nic>> nics, RegionsOptions options);
  ~Regions();

  /// The card's bytes; empty for memory that no RDMA device reaches (files). Errors: the registration's; kInvalid when
  /// the memory is not of the device that the region says; kUnsupported where GPU memory is not reached.
  Result<std::string> add(const RegionEntry& region) HAWSER_EXCLUDES(mutex_);
  /// As `remove`, but a large region is left to a thread of its own. True: nothing touches the memory any more; false:
  /// ask again later.
  bool retire(std::uint32_t index, std::uint32_t generation) HAWSER_EXCLUDES(mutex_);
  /// Deregisters it: when this returns, no device touches the memory for peers any more, unless another region shares
  /// its registration.
  void remove(std::uint32_t index, std::uint32_t generation) HAWSER_EXCLUDES(mutex_);
  std::size_t count() const HAWSER_EXCLUDES(mutex_);
  /// Of the n-th NIC.
  const GpuRegistrations& gpu(std::size_t nic) const { return *gpus_[nic]; }

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  using Registrations = std::vector<std::shared_ptr<Registration>>;  ///< By NIC; ports of one device share it.

  Status check(const RegionEntry& region, Device device) const;
  Result<Registrations> register_host_memory(const Wanted& wanted);
  Result<Registrations> register_gpu_memory(const Wanted& wanted, int gpu);
  /// A region that a thread of its own deregisters.
  struct Retiring {
    std::atomic<bool> done{false};
    std::thread thread;
  };

  void drop(Registrations dying);
  /// What was registered, which is listed no more; empty: nothing is.
  Registrations take(const Key& key) HAWSER_REQUIRES(mutex_);
  /// Leaves a large region to a thread; null: what is `dying` is the caller's still.
  std::unique_ptr<Retiring> start_retiring(Registrations& dying);

  const std::vector<std::shared_ptr<Nic>> nics_;
  const RegionsOptions options_;
  const bool ranks_nodes_;  ///< Some port is nearer to some memory of the host than another one.
  /// Whether no NIC before it is a port of the same device, which has what is registered.
  bool is_first(std::size_t nic) const { return first_[nic] == nic; }
  std::vector<std::size_t> first_;                       ///< By NIC: the first one of its device.
  std::vector<std::shared_ptr<GpuRegistrations>> gpus_;  ///< By NIC; ports of one device share it.
  mutable base::Mutex mutex_;
  std::map<Key, std::unique_ptr<Retiring>> retiring_ HAWSER_GUARDED_BY(mutex_);
  std::map<Key, Registrations> regions_ HAWSER_GUARDED_BY(mutex_);
  base::Mutex ranking_;
  std::set<int> ranked_ HAWSER_GUARDED_BY(ranking_);  ///< GPUs that the NICs know how near they are to.
};

}  // namespace hawser::backend::verbs
