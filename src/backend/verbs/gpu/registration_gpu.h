#pragma once

// GpuMemory: registers memory of the host and of GPUs with one device, whichever a pointer points to.
//
// A GPU's memory is exported as a dmabuf: all of its allocation, rounded to pages, one registration for each allocation
// that the range lies in, the descriptor closed at once. Where driver, kernel or NIC has no dmabufs, the address itself
// is registered, if the kernel has a peer-memory module: that is tried once, with a page. Else it is refused, and the
// caller goes by way of host memory.
//
// Thread rule: thread-safe. Lifetime: outlives the MrCache that it is the source of; holds its Domain.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/gpu/gpu_driver.h"
#include "backend/verbs/gpu/pointer.h"
#include "backend/verbs/memory/mr_cache.h"
#include "backend/verbs/memory/registration.h"
#include "backend/verbs/options.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

/// How a device will reach GPU memory.
enum class GpuPath : std::uint8_t { kNone, kPeerMemory, kDmabuf };

struct GpuDirectPlan {
  GpuPath path = GpuPath::kNone;
  /// Good when this is the best there is; else what is missing, for people. Also good when nobody asked (kOff).
  Status downgrade;
};

/// What can work, found out without GPU memory: a dmabuf registration that names no descriptor (who knows the call
/// complains of that), and the kernel's modules under `sysfs`. Whether the GPUs export dmabufs is asked for kRequire
/// only: it initialises the driver, which would cost processes that have no GPU work, and their children by fork.
/// `driver` may be null, `no_driver` is why. Error: kUnsupported, for kRequire when the plan would be kNone.
Result<GpuDirectPlan> plan_gpu_direct(const Domain& domain, GpuDriver* driver, GpuDirect mode,
                                      const std::string& sysfs = "/sys", const Status& no_driver = {});

class GpuMemory final : public MemorySource {
 public:
  /// `driver` may be null and outlives it.
  GpuMemory(std::shared_ptr<Domain> domain, GpuDriver* driver, const GpuDirectPlan& plan)
      : domain_(std::move(domain)), driver_(driver), path_(plan.path), downgrade_(plan.downgrade) {}

  Result<std::vector<Made>> make(const Wanted& wanted) override;
  /// The buffer id of GPU memory; 0 for the host's.
  std::uint64_t generation(std::uintptr_t address) override;

  /// One registration that covers the range. Where that lies in several allocations, they are exported together.
  Result<Made> make_one(const Wanted& wanted);

  bool is_gpu_memory(std::uintptr_t address);
  GpuDriver* driver() const { return driver_; }
  /// The path in use: a plan's dmabuf may turn out not to work.
  GpuPath path() const { return path_.load(std::memory_order_relaxed); }
  /// Why the path is not the best; good: it is, or gpu_direct is off.
  Status downgrade() const HAWSER_EXCLUDES(mutex_);
  /// Why GPU memory is refused; good: it is not.
  Status refusal() const HAWSER_EXCLUDES(mutex_);
  /// "GPU memory by dmabuf", "GPU memory by peer memory (mlx5_0 registers no dmabufs)", "no GPU memory (...)".
  std::string describe() const HAWSER_EXCLUDES(mutex_);

 private:
  Result<Made> make_piece(const Wanted& wanted, const PointerFacts& facts);
  Result<std::shared_ptr<Registration>> register_allocation(AddressRange range, const Access& access, int ordinal);
  Result<std::shared_ptr<Registration>> register_peer_memory(AddressRange range, const Access& access, int ordinal);
  bool probe_peer_memory(AddressRange range) HAWSER_EXCLUDES(mutex_);
  void go_down_to_peer_memory(const Status& why) HAWSER_EXCLUDES(mutex_);
  AddressRange extent(const PointerFacts& facts, std::uintptr_t at, std::uintptr_t end) const;

  const std::shared_ptr<Domain> domain_;
  GpuDriver* const driver_;
  std::atomic<GpuPath> path_;
  mutable base::Mutex mutex_;
  enum class Probe : std::uint8_t { kNotYet, kWorks, kFails };
  Probe peer_memory_ HAWSER_GUARDED_BY(mutex_) = Probe::kNotYet;
  Status downgrade_ HAWSER_GUARDED_BY(mutex_);
};

/// Registers whole pages of GPU memory by a dmabuf, under their own addresses. `range` is what the result covers; the
/// key covers its pages. `ordinal` is the GPU's.
Result<std::shared_ptr<Registration>> register_dmabuf(const std::shared_ptr<Domain>& domain, GpuDriver& driver,
                                                      AddressRange range, const Access& access, int ordinal = 0);

/// `range`, begin and end moved out to page boundaries.
AddressRange whole_pages(AddressRange range);

}  // namespace hawser::backend::verbs
