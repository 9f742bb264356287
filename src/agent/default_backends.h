#pragma once

// The backends that an agent opens by name, unless its maker brings others (as the simulator does).

#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"

namespace hawser::agent {

std::vector<backend::Factory> default_backends();
/// And the plug-ins in these folders. What is odd there is logged; one that does not load fails when it is opened.
std::vector<backend::Factory> all_backends(std::span<const std::string> plugin_paths, const base::Logger& log);

/// "host:port" with the host's name resolved. Blocks at most until `deadline`.
Result<std::string> resolve_address(std::string_view address, Instant deadline);

}  // namespace hawser::agent
