#include "backend/verbs/devices/select.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "backend/verbs/devices/device_files.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::string_view kHintForms = "cpu:N (a NUMA node), cuda:N (a GPU), nic:NAME (an RDMA device)";

struct PortName {
  std::string device;
  std::optional<std::uint32_t> port;
};

PortName parse_port_name(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {std::string(text), {}};
  const std::string_view digits = text.substr(colon + 1);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return {std::string(text), {}};
  return {std::string(text.substr(0, colon)), number};
}

std::string names_of_ports(const DeviceInfo& device) {
  std::string text;
  for (const PortInfo& port : device.ports) text += fmt::format("{}{}", text.empty() ? "" : ", ", port.number);
  return text.empty() ? "none" : text;
}

Status absent_device(const std::string& name, std::span<const DeviceInfo> devices) {
  return Status(Code::kNotFound,
                fmt::format("there is no RDMA device '{}' on this host; there are: {}", name, names_of(devices)))
      .with_device(name)
      .with_advice("name a device of this host; hawser topo lists them");
}

// Adds what one name of the user stands for; each of its ports must be usable, or all if it names the device alone and
// has none that is.
Status add_named(const std::string& text, std::span<const DeviceInfo> devices, std::vector<LocalPort>& into) {
  const PortName name = parse_port_name(text);
  const auto device =
      std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& d) { return d.name == name.device; });
  if (device == devices.end()) return absent_device(name.device, devices);
  Status why;
  bool found = false, added = false;
  for (const PortInfo& port : device->ports) {
    if (name.port && port.number != *name.port) continue;
    found = true;
    const Status status = usable(*device, port);
    if (status.ok()) {
      added = true;
      const bool have = std::any_of(into.begin(), into.end(), [&](const LocalPort& p) { return p.port == &port; });
      if (!have) into.push_back({&*device, &port, {}, 0});
    } else if (why.ok()) {
      why = status;
    }
  }
  if (added) return {};
  if (found) return why;
  return Status(Code::kNotFound,
                fmt::format("RDMA device {} has no port {}; it has: {}", device->name,
                            name.port ? std::to_string(*name.port) : "at all", names_of_ports(*device)))
      .with_device(device->name);
}

Result<std::vector<LocalPort>> all_usable(std::span<const DeviceInfo> devices) {
  std::vector<LocalPort> ports;
  Status why(Code::kNotFound, "none has a port");
  for (const DeviceInfo& device : devices) {
    for (const PortInfo& port : device.ports) {
      const Status status = usable(device, port);
      if (status.ok()) {
        ports.push_back({&device, &port, {}, 0});
      } else {
        why = status;
      }
    }
  }
  if (!ports.empty()) return ports;
  return Status(Code::kUnsupported,
                fmt::format("no RDMA device of this host can be used; there are: {}", names_of(devices)))
      .with_advice(why.advice())
      .because(why);
}

Result<std::vector<LocalPort>> wanted(std::span<const DeviceInfo> devices, const ChooseOptions& options,
                                      const Hint& hint) {
  if (devices.empty()) {
    return Status(Code::kNotFound, "this host has no RDMA device")
        .with_advice("hawser doctor tells what to do; Soft-RoCE: sudo rdma link add rxe0 type rxe netdev INTERFACE");
  }
  if (hint.kind != Hint::Kind::kNic && options.devices.empty()) return all_usable(devices);
  std::vector<LocalPort> ports;
  if (hint.kind == Hint::Kind::kNic) {
    HAWSER_TRY(add_named(hint.nic, devices, ports));
    return ports;
  }
  for (const std::string& name : options.devices) HAWSER_TRY(add_named(name, devices, ports));
  return ports;
}

Status check_numa_node(std::uint32_t node, const std::string& sysfs_root) {
  const std::vector<std::string> nodes = numa_nodes_in(sysfs_root);
  if (std::find(nodes.begin(), nodes.end(), std::to_string(node)) != nodes.end()) return {};
  return Status(Code::kNotFound, fmt::format("the hint cpu:{} names a NUMA node that is not here; there are: {}", node,
                                             fmt::join(nodes, ", ")));
}

PciPath capped(PciPath path, const PortInfo& port) {
  if (port.mbit_per_s > 0) path.mbit_per_s = std::min(path.mbit_per_s, port.mbit_per_s);
  return path;
}

Status measure(const Hint& hint, const ChooseOptions& options, std::vector<LocalPort>& ports) {
  std::optional<PciPlace> gpu;
  if (hint.kind == Hint::Kind::kCuda) {
    if (!options.cuda_pci) {
      return Status(Code::kUnsupported,
                    fmt::format("the hint cuda:{} needs a CUDA driver, and there is none", hint.number));
    }
    HAWSER_TRY_ASSIGN(const PciAddress address, options.cuda_pci(hint.number));
    gpu = find_pci_place(options.sysfs_root, address);
  } else if (hint.kind == Hint::Kind::kCpu) {
    HAWSER_TRY(check_numa_node(hint.number, options.sysfs_root));
  }
  for (LocalPort& local : ports) {
    PciPath path{PathClass::kPix, UINT64_MAX};
    if (hint.kind == Hint::Kind::kCuda) path = pci_path(local.device->pci, gpu);
    if (hint.kind == Hint::Kind::kCpu) path = numa_path(local.device->pci, static_cast<int>(hint.number));
    local.path = capped(path, *local.port);
  }
  return {};
}

bool before(const LocalPort& a, const LocalPort& b) {
  if (!(a.path == b.path)) return a.path.better_than(b.path);
  if (a.device->name != b.device->name) return name_before(a.device->name, b.device->name);
  return a.port->number < b.port->number;
}

}  // namespace

std::function<Result<PciAddress>(std::uint32_t)> cuda_pci_of(GpuDriver& driver) {
  return [&driver](std::uint32_t ordinal) -> Result<PciAddress> {
    HAWSER_TRY_ASSIGN(const std::string text, driver.pci_address(static_cast<int>(ordinal)));
    if (const auto address = parse_pci_address(text)) return *address;
    return Status(Code::kFailed, fmt::format("{} says that GPU {} is at '{}', which is no PCI address",
                                             driver.describe(), ordinal, text));
  };
}

Result<Hint> parse_hint(std::string_view text) {
  if (text.empty()) return Hint{};
  const Status wrong =
      Status(Code::kInvalid, fmt::format("'{}' is no hint for a device; there are: {}", text, kHintForms));
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (kind == "nic") {
    if (rest.empty()) return wrong;
    return Hint{Hint::Kind::kNic, 0, std::string(rest)};
  }
  if (kind != "cpu" && kind != "cuda") return wrong;
  Hint hint{kind == "cpu" ? Hint::Kind::kCpu : Hint::Kind::kCuda, 0, {}};
  if (colon == std::string_view::npos) return hint;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), hint.number);
  if (rest.empty() || error != std::errc() || end != rest.data() + rest.size()) return wrong;
  return hint;
}

Status usable(const DeviceInfo& device, const PortInfo& port) {
  const std::string who = fmt::format("port {} of RDMA device {}", port.number, device.name);
  if (device.transport == Transport::kIwarp) {
    return Status(Code::kUnsupported, who + " is iWARP, which connects by rdma_cm only")
        .with_device(device.name)
        .with_advice("use a RoCE or InfiniBand device, or tcp");
  }
  if (port.active()) return {};
  const bool ethernet = port.link_layer == LinkLayer::kEthernet;
  const std::string netdev = port.netdev.empty() ? "INTERFACE" : port.netdev;
  return Status(Code::kUnsupported, fmt::format("{} is not active, it is {}", who, to_string(port.state)))
      .with_device(device.name)
      .with_advice(ethernet
                       ? fmt::format("sudo ip link set {} up   (up already: look at the cable and the switch)", netdev)
                       : "look at the cable, and at the subnet manager (sminfo)");
}

Result<std::vector<LocalPort>> choose_ports(std::span<const DeviceInfo> devices, const ChooseOptions& options) {
  HAWSER_TRY_ASSIGN(const Hint hint, parse_hint(options.hint));
  HAWSER_TRY_ASSIGN(std::vector<LocalPort> ports, wanted(devices, options, hint));
  HAWSER_TRY(measure(hint, options, ports));
  std::sort(ports.begin(), ports.end(), before);
  for (std::size_t i = 1; i < ports.size(); ++i) {
    ports[i].rank = ports[i - 1].rank + (ports[i].path == ports[i - 1].path ? 0 : 1);
  }
  return ports;
}

}  // namespace hawser::backend::verbs
