#pragma once

// The machine as the planner will see it: packages, NUMA nodes, shared caches and cores from hwloc, network and GPU
// devices from the kernel's own folders, and how far each device is from each NUMA node.
//
// Thread rule: pure reads.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/devices/device_survey.h"

namespace hawser::cli {

/// A machine, package, NUMA node, cache or core, with what lies in it.
struct TopoNode {
  std::string kind;  ///< "machine", "package", "numa", "l3", "core".
  std::uint32_t index = 0;
  std::uint64_t bytes = 0;  ///< Memory of a NUMA node, size of a cache.
  std::string cpus;         ///< "0-3,8".
  std::vector<TopoNode> children;
};

struct TopoDevice {
  std::string kind;  ///< "nic", "rdma", "gpu".
  std::string name;  ///< "eth0", "mlx5_0", "0000:65:00.0".
  std::string detail;
  std::optional<std::uint64_t> mbit_per_s;
  std::optional<std::uint32_t> numa;  ///< Absent where the system does not tell (virtual machines).
};

struct TopoReport {
  TopoNode machine;
  std::vector<TopoDevice> devices;
  backend::verbs::Survey rdma;
  std::vector<std::uint32_t> numa_nodes;
  std::vector<std::vector<std::uint64_t>> distances;  ///< Between NUMA nodes, 10 is local; may be empty.
};

Result<TopoReport> scan_topology();

}  // namespace hawser::cli
