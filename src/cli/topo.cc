// hawser topo: the machine as a tree, its devices, and which device is near which NUMA node. See topo_scan.h.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/rdma_view.h"
#include "cli/status_exit.h"
#include "cli/table.h"
#include "cli/topo_scan.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

constexpr const char* kTopoExamples =
    "  hawser topo\n"
    "  hawser topo --json | jq '.devices[] | select(.kind == \"nic\")'";

std::string title(const TopoNode& node) {
  std::string text = node.kind == "machine" ? "machine" : fmt::format("{} {}", node.kind, node.index);
  if (node.bytes > 0) text += fmt::format(", {}", short_size(node.bytes));
  if (!node.cpus.empty()) text += fmt::format(", cpus {}", node.cpus);
  return text;
}

void print_tree(const TopoNode& node, const std::string& lead) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const bool last = i + 1 == node.children.size();
    fmt::print("{}{} {}\n", lead, last ? "`-" : "|-", title(node.children[i]));
    print_tree(node.children[i], lead + (last ? "   " : "|  "));
  }
}

std::string speed_text(const TopoDevice& device) {
  if (!device.mbit_per_s || *device.mbit_per_s == 0) return "unknown";
  const double gbit = static_cast<double>(*device.mbit_per_s) / 1000;
  return fmt::format("{:g} Gbit/s", gbit);
}

void print_devices(const TopoReport& report) {
  Table table({{"device"}, {"name"}, {"speed", Align::kRight}, {"numa", Align::kRight}, {"what"}});
  for (const TopoDevice& device : report.devices) {
    table.add({device.kind, device.name, speed_text(device), device.numa ? std::to_string(*device.numa) : "-",
               device.detail});
  }
  fmt::print("\n{}", table.to_string());
}

// The kernel's distance from a device's NUMA node to another; nothing when either is unknown.
std::optional<std::uint64_t> distance(const TopoReport& report, const TopoDevice& device, std::size_t column) {
  const auto row = std::find(report.numa_nodes.begin(), report.numa_nodes.end(), device.numa.value_or(UINT32_MAX));
  if (row == report.numa_nodes.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(row - report.numa_nodes.begin());
  if (at >= report.distances.size() || column >= report.distances[at].size()) return std::nullopt;
  return report.distances[at][column];
}

void print_matrix(const TopoReport& report) {
  std::vector<Column> columns = {{"distance"}};
  for (const std::uint32_t node : report.numa_nodes) columns.push_back({fmt::format("numa {}", node), Align::kRight});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < report.distances.size(); ++i) {
    std::vector<std::string> cells = {fmt::format("numa {}", report.numa_nodes[i])};
    for (const std::uint64_t value : report.distances[i]) cells.push_back(std::to_string(value));
    table.add(std::move(cells));
  }
  for (const TopoDevice& device : report.devices) {
    std::vector<std::string> cells = {device.name};
    for (std::size_t column = 0; column < report.numa_nodes.size(); ++column) {
      const auto value = distance(report, device, column);
      cells.push_back(value ? std::to_string(*value) : "?");
    }
    table.add(std::move(cells));
  }
  fmt::print("\n{}10 is local; ? the system does not tell where the device is attached\n", table.to_string());
}

void print_rdma(const TopoReport& report) {
  if (report.rdma.devices.empty()) return;
  const auto infos = infos_of(report.rdma);
  const std::string rails = rdma_rails_text(backend::verbs::ports_by_place(infos, "/sys"));
  for (const std::string& text : {rdma_ports_text(report.rdma), rdma_gids_text(report.rdma), rails}) {
    if (!text.empty()) fmt::print("\n{}", text);
  }
  fmt::print("ports of one rank share the transfers; PIX to SYS: how far, within a switch to between processors\n");
}

Json tree_json(const TopoNode& node) {
  Json json = {{"kind", node.kind}, {"index", node.index}};
  if (node.bytes > 0) json["bytes"] = node.bytes;
  json["cpus"] = node.cpus;
  json["children"] = Json::array();
  for (const TopoNode& child : node.children) json["children"].push_back(tree_json(child));
  return json;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

void print_json(const TopoReport& report) {
  Json json = document("topo");
  json["ok"] = true;
  json["tree"] = tree_json(report.machine);
  json["devices"] = Json::array();
  for (const TopoDevice& device : report.devices) {
    json["devices"].push_back({{"kind", device.kind},
                               {"name", device.name},
                               {"detail", device.detail},
                               {"mbit_per_s", or_null(device.mbit_per_s)},
                               {"numa", or_null(device.numa)}});
  }
  json["numa_nodes"] = report.numa_nodes;
  json["numa_distances"] = report.distances;
  const auto infos = infos_of(report.rdma);
  json["rdma"] = rdma_json(report.rdma);
  json["rdma"]["rails"] = rails_json(backend::verbs::ports_by_place(infos, "/sys"));
  print(json);
}

int run_topo(bool json) {
  const Result<TopoReport> report = scan_topology();
  if (!report) return fail("topo", json, report.error());
  if (json) {
    print_json(*report);
  } else {
    fmt::print("{}\n", title(report->machine));
    print_tree(report->machine, "");
    print_devices(*report);
    print_matrix(*report);
    print_rdma(*report);
  }
  return kExitOk;
}

}  // namespace

void add_topo(Shell& shell) {
  auto common = std::make_shared<Common>();
  CLI::App* command = add_command(shell, "topo", "Show cores, memory, NICs and GPUs, and which are near each other",
                                  kTopoExamples, *common);
  on_run(shell, command, [common] { return run_topo(common->json); });
}

}  // namespace hawser::cli
