#pragma once

// Survey: what this host has for RDMA, for people: what `hawser topo`, `info` and `doctor` show. It opens devices for a
// moment and keeps nothing.
//
// Thread rule: any thread.

#include <memory>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/devices/select.h"
#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

struct SurveyedDevice {
  DeviceInfo info;
  Status open;           ///< Good, or why it cannot be opened; says "not tried" when libibverbs is missing.
  bool has_file = true;  ///< Its file is there and may be opened; else `open` says why not.
  std::vector<std::vector<GidScore>> gids;  ///< For each port its table, best first.
  std::vector<Status> usable;               ///< For each port.
};

/// Ports as seen from one place: a NUMA node or a GPU.
struct PlacePorts {
  std::string place;  ///< "cpu:0"; a GPU's PCI address.
  std::vector<LocalPort> ports;
};

struct Survey {
  std::string library;  ///< "libibverbs.so.1"; empty when it does not load.
  Status library_error;
  std::vector<SurveyedDevice> devices;
};

/// Of this host.
Survey survey_devices();
/// Of given devices. `verbs` is null when `library_error` says why; files of devices are looked for in `dev_folder`.
Survey survey_devices(std::vector<DeviceInfo> devices, const std::shared_ptr<Verbs>& verbs, const Status& library_error,
                      const std::string& dev_folder);

/// For each NUMA node and each GPU of this host, its ports, nearest first. The result points into `devices`. Empty
/// when no port can be used.
std::vector<PlacePorts> ports_by_place(std::span<const DeviceInfo> devices, const std::string& sysfs_root);

}  // namespace hawser::backend::verbs
