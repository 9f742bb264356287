#pragma once

// The backend verbs over a fabric in memory, for whole agents: its ports are the fabric's, all else is the real thing,
// the sockets of the handshake too.
//
// Thread rule: a fabric has one thread; agents with threads of their own get a LockedVerbs each, with one lock.
// Lifetime: fabric and lock outlive the agents.

#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/verbs/devices/device.h"
#include "backend/verbs/devices/nic.h"
#include "backend/verbs/mock/mock_fabric.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

/// A device of the fabric as sysfs would tell it.
DeviceInfo mock_device_info(const MockDevice& device);

/// Named "verbs", with the parameters of the real one. It opens the fabric's devices through `verbs`.
Factory mock_backend(MockFabric& fabric, std::shared_ptr<Verbs> verbs, GpuAccess gpus = {});

/// A process's view of a fabric that several threads use. Not for datagrams, which are posted past it. Who deregisters
/// memory first runs `before_dereg`, without the lock.
std::shared_ptr<Verbs> locked_verbs(MockFabric& fabric, base::Mutex& mutex, std::function<void()> before_dereg = {});

}  // namespace hawser::backend::verbs
