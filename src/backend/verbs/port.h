#pragma once

// VerbsPort: the RDMA paths of one lane, their completion queues, and the stream port that carries their control.
//
// Thread rule: confined to its lane. Lifetime: owns the paths; the backend's regions outlive it.

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/events.h"
#include "backend/stream/port.h"
#include "backend/verbs/devices/device_search.h"
#include "backend/verbs/devices/lane_events.h"
#include "backend/verbs/memory/regions.h"
#include "backend/verbs/path/number_cache.h"
#include "backend/verbs/path/path.h"

namespace hawser::backend::verbs {

/// What a port is made of. `network` belongs to `control`.
struct PortParts {
  std::vector<std::shared_ptr<Nic>> nics;
  std::shared_ptr<Regions> regions;
  std::unique_ptr<Port> control;
  stream::Network* network = nullptr;
  Reopening reopening = {};
  std::uint64_t host = 0;  ///< What peers are told as this host's name; 0: nothing.
};

class VerbsPort final : public Port, private LaneUser {
 public:
  static Result<std::unique_ptr<VerbsPort>> open(const Context& context, const VerbsOptions& options, PortParts parts);
  ~VerbsPort() override;

  Result<Path*> open_path(const PathTarget& target, Instant now) override;
  void release_path(Path* path) override;
  std::size_t turn(Instant now, const TurnBudget& budget) override;
  std::size_t poll(std::span<PortEvent> out) override;
  bool has_news(Instant now) override;
  Instant next_deadline() const override;
  int wait_fd() const override { return parts_.control->wait_fd(); }
  bool prepare_sleep() override;
  bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) override;
  void begin_close(Instant now) override;
  bool idle() const override;
  void describe(const WaitVisitor& visitor) const override;
  std::vector<DeviceCounters> devices() const override;
  std::optional<AdmissionCounters> admissions() const override { return parts_.control->admissions(); }

 private:
  VerbsPort(const Context& context, const VerbsOptions& options, PortParts parts);
  Status open_lanes();
  Status add_lane(const std::shared_ptr<Nic>& nic, std::unique_ptr<CqPool> queues);
  std::uint32_t queue_depth() const {
    return options_.pair.send_depth + 2 * options_.pair.messages + options_.pair.immediates + 1;
  }
  std::size_t poll_completions(Instant now);

  // LaneUser.
  void on_lane_fault(std::uint32_t lane, const Status& why, Instant now) override;
  bool on_address_change(std::uint32_t lane, const Status& why, Instant now) override;
  void on_deaf(std::uint32_t device, Instant now) override;
  void on_heard(std::uint32_t device) override { search_.forget(device); }

  std::size_t look_for_devices(Instant now);
  Status take_back(DeviceSearch::Found& found);
  /// Takes the next event of the control port; true when `out` was filled.
  bool translate(PortEvent& event, PortEvent& out);
  void drop_control(VerbsPath& path);
  void bury();
  std::size_t turn_paths(Instant now);

  Context context_;
  const VerbsOptions options_;
  Pairing pairing_;
  PortParts parts_;
  std::vector<std::unique_ptr<NicLane>> lanes_;
  stream::EventQueue events_;
  PortShared shared_;
  LaneEvents async_;
  DeviceSearch search_;
  std::vector<std::unique_ptr<VerbsPath>> paths_;
  std::unordered_map<const Path*, VerbsPath*> by_control_;
  NumberCache<VerbsPath> by_number_;
  bool control_has_news_ = false;    ///< Events that its last turn told of may be left.
  std::array<PortEvent, 16> stash_;  ///< Events of the control port that were taken and not told yet.
  std::size_t stash_at_ = 0, stash_end_ = 0;
  Instant now_ = Instant::min();  ///< Of the last turn: events are taken in between.
  Instant next_due_ = Instant::max();
  bool slept_ = true;
};

}  // namespace hawser::backend::verbs
