#pragma once

// The backend, made of ports that are open already: those of this host (factory.h finds them), or of a fabric in memory
// (mock_backend.h).
//
// Thread rule: any thread.

#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/tcp/factory.h"
#include "backend/verbs/devices/device_search.h"
#include "backend/verbs/devices/nic.h"
#include "backend/verbs/options.h"

namespace hawser::backend::verbs {

/// `nics` is not empty; `door` has the sockets of the handshake.
std::unique_ptr<Backend> make_backend(const Context& context, VerbsOptions options,
                                      std::vector<std::shared_ptr<Nic>> nics, TcpDoor door, Reopening reopening = {});
/// Opens devices that came back, as they were opened first. `list` gives those that there are.
Reopening reopening(std::shared_ptr<Verbs> verbs, VerbsOptions options, GpuAccess gpus,
                    std::function<std::vector<DeviceInfo>()> list);

}  // namespace hawser::backend::verbs
