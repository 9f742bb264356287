#pragma once

// DeviceSearch: looks for devices that were taken away, until they are there again under their names: a firmware reset,
// a driver that was loaded anew. What comes back is another device to libibverbs, with nothing of the old one's.
//
// Opening a device and registering all regions with it may block, so a job aside does that; one at a time, since ports
// that come back are numbered in the order in which regions hear of them.
//
// Thread rule: confined to the lane, but for the job. Lifetime: its end waits for the job.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/verbs/devices/nic.h"
#include "backend/verbs/memory/regions.h"
#include "backend/verbs/queues/cq_pool.h"
#include "proto/backoff.h"

namespace hawser::backend::verbs {

/// Does a job elsewhere; what it returns waits for the job's end when it goes. Null: none can be done now.
using Aside = std::function<std::shared_ptr<void>(std::function<void()> job)>;
/// By a thread of its own.
std::shared_ptr<void> by_thread(std::function<void()> job);

struct Reopening {
  /// Opens ports of the device of this name; all of them or an error. Called by the job.
  std::function<Result<std::vector<std::shared_ptr<Nic>>>(const std::string& device,
                                                          std::span<const std::uint8_t> ports)>
      open;  ///< Empty: devices that are gone stay gone.
  Aside aside = by_thread;
};

class DeviceSearch {
 public:
  struct Found {
    std::uint32_t device = 0;  ///< As it was named to `miss`.
    std::vector<std::shared_ptr<Nic>> nics;
    std::vector<std::unique_ptr<CqPool>> queues;  ///< By NIC.
    Status unregistered;                          ///< Why some region has no key for them.
  };

  /// `queue_depth`: see CqPool::open.
  DeviceSearch(Reopening how, std::shared_ptr<Regions> regions, std::uint32_t queue_depth, base::Rng rng);

  /// This one is gone. Looking for it begins after a pause: it may be a moment's trouble.
  void miss(std::uint32_t device, std::string name, std::vector<std::uint8_t> ports, Instant now);
  /// It is there after all. If the job opened it meanwhile, it is found all the same.
  void forget(std::uint32_t device);
  bool misses(std::uint32_t device) const;
  Instant next_look() const { return next_look_; }
  /// Regions know its ports already, behind all others: they must be taken.
  std::optional<Found> look(Instant now);

 private:
  struct Missing {
    std::uint32_t device = 0;
    std::string name;
    std::vector<std::uint8_t> ports;
    proto::Backoff backoff;
    Instant next = Instant::max();
  };
  struct Job {
    std::atomic<bool> is_done{false};
    bool is_open = false;
    Found found;
    std::shared_ptr<void> running;
  };
  void begin(Missing& missing);

  const Reopening how_;
  const std::shared_ptr<Regions> regions_;
  const std::uint32_t queue_depth_;
  base::Rng rng_;
  std::vector<Missing> missing_;  ///< At most as many as devices were ever open.
  std::shared_ptr<Job> job_;
  Instant next_look_ = Instant::max();
};

}  // namespace hawser::backend::verbs
