#include "backend/verbs/devices/device_query.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "backend/verbs/devices/device_list.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::string_view kGiveFile =
    "sudo modprobe ib_uverbs && sudo udevadm trigger   (container: --device=/dev/infiniband/{0})";

Result<ibv_device*> known_device(const DeviceList& list, const DeviceInfo& device) {
  if (list.error() != 0) {
    return Status(Code::kUnsupported, fmt::format("ibv_get_device_list: {}", std::strerror(list.error())))
        .with_device(device.name)
        .with_advice("sudo modprobe ib_uverbs");
  }
  for (ibv_device* known : list.devices()) {
    if (device.name == known->name) return known;
  }
  return Status(Code::kUnsupported, fmt::format("libibverbs does not know {}, whose driver is {}", device.name,
                                                device.driver.empty() ? "unknown" : device.driver))
      .with_device(device.name)
      .with_advice("sudo apt-get install ibverbs-providers   (the part of rdma-core for its driver)");
}

void take(const ibv_port_attr& attributes, PortInfo& port) {
  const auto state = static_cast<std::uint32_t>(attributes.state);
  if (state >= 1 && state <= 5) port.state = static_cast<PortState>(state);
  port.lid = attributes.lid;
  port.sm_lid = attributes.sm_lid;
  const auto mtu = static_cast<std::uint32_t>(attributes.active_mtu);  // 1: 256 to 5: 4096
  if (mtu >= 1 && mtu <= 5) port.active_mtu = 128u << mtu;
  if (port.mbit_per_s == 0) port.mbit_per_s = port_mbit_per_s(attributes.active_speed, attributes.active_width);
}

Status query_ports(Verbs& verbs, ibv_context* context, DeviceInfo& device) {
  for (PortInfo& port : device.ports) {
    ibv_port_attr attributes = {};
    const int error = verbs.query_port(context, port.number, &attributes);
    if (error != 0) {
      return Status(Code::kFailed,
                    fmt::format("ibv_query_port of {}, port {}: {}", device.name, port.number, std::strerror(error)))
          .with_device(device.name);
    }
    take(attributes, port);
  }
  return {};
}

Status query(Verbs& verbs, const DeviceList& list, DeviceInfo& device) {
  HAWSER_TRY_ASSIGN(ibv_device * found, known_device(list, device));
  ibv_context* context = verbs.open_device(found);
  if (context == nullptr) {
    const int error = errno;
    const bool denied = error == EACCES || error == EPERM;
    return Status(denied ? Code::kDenied : Code::kFailed,
                  fmt::format("ibv_open_device of {}: {}", device.name, std::strerror(error)))
        .with_device(device.name)
        .with_advice(fmt::format(kGiveFile, device.uverbs));
  }
  const Status status = query_ports(verbs, context, device);
  verbs.close_device(context);
  return status;
}

}  // namespace

std::vector<Status> query_devices(Verbs& verbs, std::span<DeviceInfo> devices) {
  const DeviceList list(verbs);
  std::vector<Status> statuses;
  statuses.reserve(devices.size());
  for (DeviceInfo& device : devices) statuses.push_back(query(verbs, list, device));
  return statuses;
}

Status check_access(const std::string& dev_folder, const DeviceInfo& device) {
  if (device.uverbs.empty()) {
    return Status(Code::kUnsupported, fmt::format("{} has no file in {}", device.name, dev_folder))
        .with_device(device.name)
        .with_advice("sudo modprobe ib_uverbs");
  }
  const std::string path = dev_folder + "/" + device.uverbs;
  if (access(path.c_str(), R_OK | W_OK) == 0) return {};
  const int error = errno;
  const Code code = error == EACCES || error == EPERM ? Code::kDenied : Code::kUnsupported;
  return Status(code, fmt::format("{} cannot be opened: {}", path, std::strerror(error)))
      .with_device(device.name)
      .with_advice(code == Code::kDenied
                       ? fmt::format("sudo chmod a+rw {}   (for good: udev's rules of rdma-core)", path)
                       : fmt::format(kGiveFile, device.uverbs));
}

}  // namespace hawser::backend::verbs
