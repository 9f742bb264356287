#include "backend/verbs/devices/device_survey.h"

#include <algorithm>
#include <utility>

#include "backend/verbs/devices/device_files.h"
#include "backend/verbs/devices/device_query.h"
#include "backend/verbs/efa/efa.h"
#include "backend/verbs/library/libibverbs.h"

namespace hawser::backend::verbs {
namespace {

// Display and processing controllers; a display without memory to serve is no place, and rare where RDMA is.
std::vector<PciAddress> gpus(const std::string& sysfs_root) {
  std::vector<PciAddress> addresses;
  const std::string folder = sysfs_root + "/bus/pci/devices/";
  for (const std::string& name : names_in(folder)) {
    const auto address = parse_pci_address(name);
    const std::string type = read_text(folder + name + "/class");
    if (address && (type.starts_with("0x0302") || type.starts_with("0x1200"))) addresses.push_back(*address);
  }
  return addresses;
}

}  // namespace

Survey survey_devices() {
  auto library = open_libibverbs();
  const std::shared_ptr<Verbs> verbs = library ? std::shared_ptr<Verbs>(*std::move(library)) : nullptr;
  std::vector<DeviceInfo> devices = read_devices();
  read_counters("/sys", devices);
  return survey_devices(std::move(devices), verbs, library.status(), "/dev/infiniband");
}

Survey survey_devices(std::vector<DeviceInfo> devices, const std::shared_ptr<Verbs>& verbs, const Status& library_error,
                      const std::string& dev_folder) {
  Survey survey;
  survey.library_error = library_error;
  std::vector<Status> opened(devices.size(), Status(Code::kUnsupported, "not tried, for libibverbs does not load"));
  if (verbs != nullptr) {
    survey.library = verbs->describe();
    if (!devices.empty()) opened = query_devices(*verbs, devices);
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Status access = check_access(dev_folder, devices[i]);
    SurveyedDevice device{std::move(devices[i]), access.ok() ? opened[i] : access, access.ok(), {}, {}};
    const bool asks_efa = verbs != nullptr && device.open.ok() && device.info.transport == Transport::kEfa;
    const Status efa = asks_efa ? check_efa(verbs, device.info) : Status();
    for (const PortInfo& port : device.info.ports) {
      device.gids.push_back(score_gids(port.gids, port.netdev));
      const Status able = usable(device.info, port);
      device.usable.push_back(able.ok() ? efa : able);
    }
    survey.devices.push_back(std::move(device));
  }
  return survey;
}

std::vector<PlacePorts> ports_by_place(std::span<const DeviceInfo> devices, const std::string& sysfs_root) {
  std::vector<PlacePorts> places;
  ChooseOptions options;
  options.sysfs_root = sysfs_root;
  const auto add = [&](const std::string& place) {
    if (auto ports = choose_ports(devices, options)) places.push_back({place, *std::move(ports)});
  };
  for (const std::string& node : numa_nodes_in(sysfs_root)) {
    options.hint = "cpu:" + node;
    add(options.hint);
  }
  options.hint = "cuda:0";
  for (const PciAddress& gpu : gpus(sysfs_root)) {
    options.cuda_pci = [&](std::uint32_t) -> Result<PciAddress> { return gpu; };
    add(gpu.to_string());
  }
  return places;
}

}  // namespace hawser::backend::verbs
