#include "cli/topo_scan.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "cli/system_limits.h"

namespace hawser::cli {
namespace {

namespace fs = std::filesystem;

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

std::string cpu_list(hwloc_const_cpuset_t set) {
  char* text = nullptr;
  if (set == nullptr || hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  std::string list(text);
  std::free(text);
  return list;
}

TopoNode node_of(const hwloc_obj* object, const char* kind) {
  TopoNode node;
  node.kind = kind;
  node.index = object->os_index == HWLOC_UNKNOWN_INDEX ? object->logical_index : object->os_index;
  node.cpus = cpu_list(object->cpuset);
  if (object->type == HWLOC_OBJ_NUMANODE) node.bytes = object->attr->numanode.local_memory;
  if (object->type == HWLOC_OBJ_L3CACHE) node.bytes = object->attr->cache.size;
  return node;
}

const char* kind_of(hwloc_obj_type_t type) {
  switch (type) {
    case HWLOC_OBJ_MACHINE:
      return "machine";
    case HWLOC_OBJ_PACKAGE:
      return "package";
    case HWLOC_OBJ_L3CACHE:
      return "l3";
    case HWLOC_OBJ_CORE:
      return "core";
    default:
      return nullptr;  // Not shown; what lies in it is.
  }
}

void add_children(const hwloc_obj* object, TopoNode& into) {
  for (const hwloc_obj* memory = object->memory_first_child; memory != nullptr; memory = memory->next_sibling) {
    if (memory->type == HWLOC_OBJ_NUMANODE) into.children.push_back(node_of(memory, "numa"));
  }
  for (const hwloc_obj* child = object->first_child; child != nullptr; child = child->next_sibling) {
    if (const char* kind = kind_of(child->type)) {
      into.children.push_back(node_of(child, kind));
      add_children(child, into.children.back());
    } else {
      add_children(child, into);
    }
  }
}

std::optional<std::uint32_t> numa_of(const fs::path& device) {
  const auto text = read_file((device / "numa_node").string());
  if (!text || text->empty() || text->front() == '-') return std::nullopt;
  return static_cast<std::uint32_t>(std::strtoul(text->c_str(), nullptr, 10));
}

std::vector<fs::path> sorted_entries(const char* folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TopoDevice nic_of(const fs::path& path) {
  TopoDevice nic{"nic", path.filename().string(), {}, {}, numa_of(path / "device")};
  const std::string state = read_file((path / "operstate").string()).value_or("unknown");
  std::error_code error;
  const auto driver = fs::read_symlink(path / "device" / "driver", error);
  nic.detail = error ? "virtual" : driver.filename().string();
  nic.detail += fmt::format(", {}, mtu {}", state, read_file((path / "mtu").string()).value_or("?"));
  nic.mbit_per_s = read_number((path / "speed").string());  // "-1" when the driver does not know
  return nic;
}

TopoDevice rdma_of(const backend::verbs::SurveyedDevice& device) {
  TopoDevice rdma{"rdma", device.info.name, device.info.driver, {}, {}};
  if (device.info.numa_node >= 0) rdma.numa = static_cast<std::uint32_t>(device.info.numa_node);
  for (const backend::verbs::PortInfo& port : device.info.ports) {
    rdma.detail += fmt::format(", port {} {}, {}", port.number, to_string(port.state), to_string(port.link_layer));
    if (port.mbit_per_s > 0) rdma.mbit_per_s = rdma.mbit_per_s.value_or(0) + port.mbit_per_s;
  }
  return rdma;
}

bool is_gpu(const fs::path& path) {
  const std::string type = read_file((path / "class").string()).value_or("");
  return type.starts_with("0x0302") || type.starts_with("0x1200") || type.starts_with("0x0300");
}

std::vector<TopoDevice> scan_devices(const backend::verbs::Survey& rdma) {
  std::vector<TopoDevice> devices;
  for (const fs::path& path : sorted_entries("/sys/class/net")) devices.push_back(nic_of(path));
  for (const auto& device : rdma.devices) devices.push_back(rdma_of(device));
  for (const fs::path& path : sorted_entries("/sys/bus/pci/devices")) {
    if (!is_gpu(path)) continue;
    devices.push_back({"gpu",
                       path.filename().string(),
                       fmt::format("vendor {}, device {}", read_file((path / "vendor").string()).value_or("?"),
                                   read_file((path / "device").string()).value_or("?")),
                       {},
                       numa_of(path)});
  }
  return devices;
}

void scan_numa(hwloc_topology* topology, TopoReport& report) {
  const hwloc_obj* node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, const_cast<hwloc_obj*>(node))) != nullptr) {
    report.numa_nodes.push_back(node->os_index);
  }
  for (const std::uint32_t index : report.numa_nodes) {
    const auto text = read_file(fmt::format("/sys/devices/system/node/node{}/distance", index));
    if (!text) return report.distances.clear();
    std::istringstream words(*text);
    auto& row = report.distances.emplace_back();
    for (std::uint64_t value = 0; words >> value;) row.push_back(value);
  }
}

}  // namespace

Result<TopoReport> scan_topology() {
  hwloc_topology* raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Status(Code::kFailed, "hwloc could not begin");
  const Topology topology(raw);
  if (hwloc_topology_load(raw) != 0) return Status(Code::kFailed, "hwloc could not read this machine");
  const hwloc_obj* root = hwloc_get_root_obj(raw);
  TopoReport report;
  report.machine = node_of(root, "machine");
  add_children(root, report.machine);
  report.rdma = backend::verbs::survey_devices();
  report.devices = scan_devices(report.rdma);
  scan_numa(raw, report);
  return report;
}

}  // namespace hawser::cli
