#pragma once

// Backends and ports for tests of what serves them: they move nothing, and do and note what the test says.
//
// Thread rule: one thread at a time.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/engine/open_backend.h"

namespace hawser::agent {

class TestPort : public backend::Port {
 public:
  Result<backend::Path*> open_path(const backend::PathTarget&, Instant) override {
    return Status(Code::kUnsupported, "a test's port leads nowhere");
  }
  void release_path(backend::Path*) override {}
  std::size_t turn(Instant, const backend::TurnBudget&) override { return 0; }
  std::size_t poll(std::span<backend::PortEvent>) override { return 0; }
  Instant next_deadline() const override { return Instant::max(); }
  int wait_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void regions_closing(std::span<const backend::RegionId> ids) override {
    for (const backend::RegionId& id : ids) closing.push_back(id.index);
  }
  bool region_quiet(std::uint32_t index, std::uint32_t, std::string* its_holder) override {
    if (!touched.contains(index)) return true;
    *its_holder = holder;
    return false;
  }
  void begin_close(Instant) override {}
  bool idle() const override { return true; }
  void describe(const backend::WaitVisitor& visitor) const override {
    for (const backend::Waiting& each : its_waits) visitor(each);
  }
  std::vector<DeviceCounters> devices() const override { return its_devices; }
  std::optional<AdmissionCounters> admissions() const override { return its_admissions; }

  std::vector<std::uint32_t> closing;  ///< Indices of regions, in the order in which it was told.
  std::set<std::uint32_t> touched;     ///< Regions that it still uses.
  std::string holder = "a peer";
  std::vector<backend::Waiting> its_waits;
  std::vector<DeviceCounters> its_devices;
  std::optional<AdmissionCounters> its_admissions;
};

class TestBackend final : public backend::Backend {
 public:
  explicit TestBackend(std::string says = "") : extra(std::move(says)) {}

  const backend::Traits& traits() const override { return its_traits; }
  std::string address() const override { return "somewhere"; }
  std::string readable_address() const override { return "somewhere"; }
  Status reachable(std::string_view) const override { return unreachable; }
  Result<std::string> add_region(const backend::RegionEntry& region) override {
    if (!refusal.ok()) return refusal;
    regions.insert(region.index);
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    return extra;
  }
  void remove_region(const backend::RegionEntry& region) override { regions.erase(region.index); }
  void let_go(const backend::RegionEntry& region) override {
    let_go_of.push_back(region.index);
    if (meanwhile) std::exchange(meanwhile, nullptr)();
  }
  std::string told(const backend::RegionEntry&) const override { return extra; }
  Result<std::unique_ptr<backend::Port>> open_port() override {
    if (!port_refusal.ok()) return port_refusal;
    return std::unique_ptr<backend::Port>(std::make_unique<TestPort>());
  }
  Params take_params() override { return {}; }
  std::vector<std::string> warnings() const override { return its_warnings; }
  void disown_after_fork() override { is_disowned = true; }

  backend::Traits its_traits{.name = "test"};
  std::string extra;  ///< What it says of each region.
  Status refusal;     ///< Of regions.
  Status port_refusal;
  Status unreachable;               ///< Good: it leads to every address.
  std::function<void()> meanwhile;  ///< Called once, the next time that it is told of a region or lets go of one.
  std::set<std::uint32_t> regions;  ///< Indices of those that it serves.
  std::vector<std::uint32_t> let_go_of;
  std::vector<std::string> its_warnings;
  bool is_disowned = false;
};

inline OpenBackend open_test_backend(std::string name, std::uint32_t number,
                                     const std::shared_ptr<TestBackend>& backend) {
  return {.name = std::move(name),
          .number = number,
          .backend = backend,
          .port = std::make_unique<TestPort>(),
          .traits = &backend->traits()};
}

inline TestPort& port_of(const OpenBackend& open) { return static_cast<TestPort&>(*open.port); }

}  // namespace hawser::agent
