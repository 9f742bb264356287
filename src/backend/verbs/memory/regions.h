#pragma once

// Regions: the agent's regions as registered with each device of its NICs.
//
// A region in host memory is registered for itself, exactly its range. One in GPU memory shares the registration of its
// allocation with the others there (regions_gpu.h). A region that one port cannot register is registered with none.
// Ports may join later (a device that came back): regions that are there are registered with them one by one.
//
// Thread rule: thread-safe; `add` may take long and holds no lock meanwhile that `remove` takes.
// Lifetime: shared by the backend and its port; holds the registrations.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/region_table.h"
#include "backend/verbs/devices/nic.h"
#include "backend/verbs/gpu/regions_gpu.h"
#include "backend/verbs/gpu/segments_mlx5.h"
#include "backend/verbs/memory/registration_pages.h"
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

/// Work requests with keys that were looked up before may use a registration of these bytes.
struct KeysInUse {
  const MrCache* cache = nullptr;  ///< Its device's.
  std::uintptr_t address = 0;
  std::size_t size = 0;
  std::uint64_t before = 0;  ///< MrReader::version.
};

class Regions {
 public:
  using IsUsed = std::function<bool(const KeysInUse&)>;

  Regions(std::vector<std::shared_ptr<Nic>> nics, RegionsOptions options);
  ~Regions();

  /// The card's bytes; empty for memory that no RDMA device reaches (files). Errors: the registration's; kInvalid when
  /// the memory is not of the device that the region says; kUnsupported where GPU memory is not reached.
  Result<std::string> add(const RegionEntry& region) HAWSER_EXCLUDES(mutex_);
  /// As `remove`, but a large region is left to a thread of its own. True: nothing touches the memory any more; false:
  /// ask again later, as another thread is still at it, too. Where other regions have the same memory, what is under
  /// way from them may use this one's keys: the lane alone knows, and such a region stays until it says by `is_used`,
  /// called under a lock, that nothing does.
  bool retire(std::uint32_t index, std::uint32_t generation, const IsUsed& is_used = {}) HAWSER_EXCLUDES(mutex_);
  /// Deregisters it: when this returns, no device touches the memory for peers any more, unless another region shares
  /// its registration.
  void remove(std::uint32_t index, std::uint32_t generation) HAWSER_EXCLUDES(mutex_);
  std::size_t count() const HAWSER_EXCLUDES(mutex_);
  /// The card's bytes as they are now; empty for a region that is not there.
  std::string told(const RegionEntry& region) const HAWSER_EXCLUDES(mutex_);
  /// These come behind the NICs that there are. Registers all regions with them, which may take long; one at a time.
  /// The first error, after all that can be registered are: a region that is not has no key for them.
  Status add_nics(std::span<const std::shared_ptr<Nic>> nics) HAWSER_EXCLUDES(mutex_);
  /// Of the n-th NIC.
  const GpuRegistrations& gpu(std::size_t nic) const { return *nics()->gpus[nic]; }

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  /// By NIC; ports of one device share it. Null where the device was gone by then.
  using Registrations = std::vector<std::shared_ptr<Registration>>;
  /// The NICs at one time. They only grow, so places stay what they are.
  struct Nics {
    std::vector<std::shared_ptr<Nic>> all;
    std::vector<std::size_t> first;                       ///< By NIC: the first one of its device.
    std::vector<std::shared_ptr<GpuRegistrations>> gpus;  ///< By NIC; ports of one device share it.
    bool ranks_nodes = false;  ///< Some port is nearer to some memory of the host than another.
    /// Whether no NIC before it is a port of the same device, which has what is registered.
    bool is_first(std::size_t nic) const { return first[nic] == nic; }
    bool is_gone(std::size_t nic) const { return all[nic]->domain->is_removed(); }
    /// Good, unless none of them from `from` on is there.
    Status any_there(std::size_t from) const;
  };
  struct Region {
    Registrations made;
    Wanted wanted;
    int gpu = -1;            ///< Ordinal of the GPU whose memory it is; -1: the host's.
    bool is_joined = false;  ///< NICs that came later are being told of it.
  };

  std::shared_ptr<const Nics> nics() const HAWSER_EXCLUDES(mutex_);
  std::shared_ptr<const Nics> with(const Nics& before, std::span<const std::shared_ptr<Nic>> more) const;
  static Status check(const Nics& nics, const RegionEntry& region, Device device);
  /// With the NICs from `from` on.
  Result<Registrations> register_host_memory(const Nics& nics, std::size_t from, const Wanted& wanted);
  Result<Registrations> register_gpu_memory(const Nics& nics, std::size_t from, const Wanted& wanted, int gpu);
  Result<Registrations> register_with(const Nics& nics, std::size_t from, const Region& region);
  /// NICs that a region is to be told of.
  struct Joint {
    std::shared_ptr<const Nics> nics;
    std::size_t from = 0;
    Region region;  ///< Without what was made.
  };
  Status join(const Key& key) HAWSER_EXCLUDES(mutex_);
  /// Nothing for a region that is gone, knows all, or is being told by another thread.
  std::optional<Joint> begin_joining(const Key& key) HAWSER_EXCLUDES(mutex_);
  Status end_joining(const Key& key, const Joint& joint, Result<Registrations> made) HAWSER_EXCLUDES(mutex_);
  /// A region that a thread of its own deregisters.
  struct Retiring {
    std::atomic<bool> done{false};
    std::thread thread;
  };

  /// Registrations that look-ups find no more.
  struct Hidden {
    Registrations made;
    std::vector<KeysInUse> uses;
  };
  /// Those of the NICs from `from` on.
  static Hidden hide(const Nics& nics, Registrations made, std::size_t from = 0);
  /// What was registered, which is listed no more; empty: nothing is.
  Hidden take(const Key& key) HAWSER_REQUIRES(mutex_);
  /// The same, to be deregistered now; empty also where something may use it.
  Registrations take_unused(const Key& key, const IsUsed& is_used) HAWSER_REQUIRES(mutex_);
  /// Leaves a large region to a thread; null: what is `dying` is the caller's still.
  std::unique_ptr<Retiring> start_retiring(Registrations& dying);

  const RegionsOptions options_;
  mutable base::Mutex mutex_;
  std::map<Key, std::unique_ptr<Retiring>> retiring_ HAWSER_GUARDED_BY(mutex_);
  std::set<Key> ending_ HAWSER_GUARDED_BY(mutex_);          ///< That a caller of `retire` deregisters now.
  std::map<Key, Hidden> hidden_ HAWSER_GUARDED_BY(mutex_);  ///< That wait until nothing uses their keys.
  std::shared_ptr<const Nics> nics_ HAWSER_GUARDED_BY(mutex_);
  std::map<Key, Region> regions_ HAWSER_GUARDED_BY(mutex_);
  base::Mutex ranking_;
  std::set<int> ranked_ HAWSER_GUARDED_BY(ranking_);  ///< GPUs that the NICs know how near they are to.
};

}  // namespace hawser::backend::verbs
