#pragma once

// A port's GIDs as they are now: from the device by one call, where libibverbs has it (34 and later), else from sysfs,
// which takes three files for each entry.
//
// Thread rule: pure reads. They take system calls, of sysfs many: for opening, and for events that are rare.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/devices/domain.h"

namespace hawser::backend::verbs {

/// Those in use, by index. `port`: its number and link layer; `attr`: how long the table is.
Result<std::vector<Gid>> read_gids(const Domain& domain, const PortInfo& port, const ibv_port_attr& attr,
                                   const std::string& sysfs_root);
/// Of the port's GIDs those that may be used, best first: one alone where the user chose it. Errors: best_gid's.
Result<std::vector<Gid>> usable_gids(const PortInfo& port, std::optional<std::uint32_t> index);

}  // namespace hawser::backend::verbs
