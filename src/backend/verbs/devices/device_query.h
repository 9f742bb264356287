#pragma once

// What only the devices themselves tell: whether they open, and what their ports run at now. Beside it, whether their
// files may be opened at all, for libibverbs leaves out without a word what it cannot reach.
//
// Thread rule: any thread. Each device is opened for the questions and closed again.

#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

/// Fills in each port's state, LID and active MTU, and its speed where sysfs gave none. One status for each device, in
/// their order: good, or why it does not open.
std::vector<Status> query_devices(Verbs& verbs, std::span<DeviceInfo> devices);

/// Whether this process may open the device's file, below `dev_folder` ("/dev/infiniband").
Status check_access(const std::string& dev_folder, const DeviceInfo& device);

}  // namespace hawser::backend::verbs
