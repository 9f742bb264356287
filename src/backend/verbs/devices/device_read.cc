// read_devices: sysfs to values. See device.h.

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/devices/device_files.h"

namespace hawser::backend::verbs {
namespace {

namespace fs = std::filesystem;

constexpr std::uint16_t kAmazon = 0x1d0f;
constexpr std::size_t kGidsMost = 4096;  // a table has 1,024 at most today

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "4: ACTIVE"
PortState state_of(const fs::path& port) {
  const int code = read_int(port / "state").value_or(0);
  return code >= 1 && code <= 5 ? static_cast<PortState>(code) : PortState::kUnknown;
}

LinkLayer link_layer_of(const fs::path& port) {
  const std::string text = read_text(port / "link_layer");
  if (text == "InfiniBand") return LinkLayer::kInfiniBand;
  return text == "Ethernet" ? LinkLayer::kEthernet : LinkLayer::kUnknown;
}

// "200 Gb/sec (4X HDR)"
std::uint64_t speed_of(const fs::path& port) {
  const double gbit_per_s = std::strtod(read_text(port / "rate").c_str(), nullptr);
  return gbit_per_s > 0 && gbit_per_s < 1e6 ? static_cast<std::uint64_t>(gbit_per_s * 1000 + 0.5) : 0;
}

GidType type_of(const fs::path& port, std::string_view index, LinkLayer link_layer) {
  if (link_layer == LinkLayer::kInfiniBand) return GidType::kInfiniBand;
  const std::string text = read_text(port / "gid_attrs/types" / index);
  if (text == "RoCE v2") return GidType::kRoceV2;
  return text == "IB/RoCE v1" && link_layer == LinkLayer::kEthernet ? GidType::kRoceV1 : GidType::kUnknown;
}

std::vector<Gid> gids_of(const fs::path& port, LinkLayer link_layer) {
  std::vector<Gid> gids;
  std::vector<std::string> names = names_in(port / "gids");
  if (names.size() > kGidsMost) names.resize(kGidsMost);
  for (const std::string& name : names) {
    const auto index = number_of(name);
    const auto bytes = parse_gid(read_text(port / "gids" / name));
    if (!index || !bytes || is_zero(*bytes)) continue;  // Unused entries are zero.
    Gid gid;
    gid.index = *index;
    gid.bytes = *bytes;
    gid.type = type_of(port, name, link_layer);
    gid.netdev = read_text(port / "gid_attrs/ndevs" / name);
    gids.push_back(std::move(gid));
  }
  return gids;
}

PortInfo port_of(const fs::path& folder, std::uint8_t number, const fs::path& root, const DeviceInfo& device,
                 GidTables gids) {
  PortInfo port;
  port.number = number;
  port.state = state_of(folder);
  port.link_layer = link_layer_of(folder);
  port.lid = static_cast<std::uint16_t>(read_int(folder / "lid").value_or(0));
  port.sm_lid = static_cast<std::uint16_t>(read_int(folder / "sm_lid").value_or(0));
  port.mbit_per_s = speed_of(folder);
  if (gids == GidTables::kRead) port.gids = gids_of(folder, port.link_layer);
  port.netdev = own_netdev(port, device);
  if (port.link_layer == LinkLayer::kEthernet && !port.netdev.empty()) {
    const int mtu = read_int(root / "class/net" / port.netdev / "mtu").value_or(0);
    port.active_mtu = rdma_mtu_of(static_cast<std::uint32_t>(std::max(mtu, 0)));
  }
  return port;
}

Transport transport_of(const fs::path& folder, const DeviceInfo& device) {
  if (device.pci_vendor == kAmazon && device.driver == "efa") return Transport::kEfa;
  switch (read_int(folder / "node_type").value_or(0)) {  // "1: CA"
    case 1:
    case 2:
    case 3:
      return Transport::kInfiniBand;
    case 4:
      return Transport::kIwarp;
    default:
      return Transport::kUnknown;
  }
}

void read_netdevs(const fs::path& folder, DeviceInfo& device) {
  device.netdevs = names_in(folder / "device/net");
  const std::string parent = read_text(folder / "parent");  // Software devices have one.
  if (!parent.empty() && device.netdevs.empty()) device.netdevs.push_back(parent);
}

void read_attachment(const fs::path& folder, const fs::path& root, DeviceInfo& device) {
  std::error_code error;
  if (fs::exists(folder / "device", error)) {
    device.pci = read_pci_place((folder / "device").string());
    device.numa_node = read_int(folder / "device/numa_node").value_or(-1);
    device.driver = fs::read_symlink(folder / "device/driver", error).filename().string();
    device.pci_vendor = static_cast<std::uint16_t>(read_int(folder / "device/vendor").value_or(0));
    device.pci_device = static_cast<std::uint16_t>(read_int(folder / "device/device").value_or(0));
  } else if (!device.netdevs.empty()) {
    const fs::path below = root / "class/net" / device.netdevs.front() / "device";
    device.pci = read_pci_place(below.string());
    device.numa_node = read_int(below / "numa_node").value_or(-1);
    device.driver = read_text(folder / "node_desc");
  }
  if (device.numa_node < 0 && device.pci) device.numa_node = device.pci->numa_node;
}

std::string uverbs_of(const fs::path& root, const std::string& name) {
  const fs::path folder = root / "class/infiniband_verbs";
  for (const std::string& entry : names_in(folder)) {
    if (read_text(folder / entry / "ibdev") == name) return entry;
  }
  return "";
}

DeviceInfo device_of(const fs::path& root, const std::string& name, GidTables gids) {
  const fs::path folder = root / "class/infiniband" / name;
  DeviceInfo device;
  device.name = name;
  device.node_guid = read_text(folder / "node_guid");
  device.firmware = read_text(folder / "fw_ver");
  device.uverbs = uverbs_of(root, name);
  read_netdevs(folder, device);
  read_attachment(folder, root, device);
  device.transport = transport_of(folder, device);
  for (const std::string& port : names_in(folder / "ports")) {
    const auto number = number_of(port);
    if (!number || *number == 0 || *number > 255) continue;
    device.ports.push_back(port_of(folder / "ports" / port, static_cast<std::uint8_t>(*number), root, device, gids));
  }
  return device;
}

}  // namespace

std::string own_netdev(const PortInfo& port, const DeviceInfo& device) {
  for (const Gid& gid : port.gids) {
    if (!gid.netdev.empty()) return gid.netdev;
  }
  return device.netdevs.size() == 1 ? device.netdevs.front() : "";
}

std::vector<Gid> read_gids(const std::string& sysfs_root, const std::string& device, std::uint8_t port,
                           LinkLayer link_layer) {
  return gids_of(fs::path(sysfs_root) / "class/infiniband" / device / "ports" / std::to_string(port), link_layer);
}

std::vector<DeviceInfo> read_devices(const std::string& sysfs_root, GidTables gids) {
  std::vector<DeviceInfo> devices;
  for (const std::string& name : names_in(fs::path(sysfs_root) / "class/infiniband")) {
    devices.push_back(device_of(sysfs_root, name, gids));
  }
  return devices;
}

}  // namespace hawser::backend::verbs
