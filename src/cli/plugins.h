#pragma once

// Plug-ins as `info` and `doctor` show them: also those that the configuration does not name.
//
// Thread rule: free functions. Lifetime: none.

#include <span>
#include <string>
#include <vector>

#include <hawser/agent.h>

namespace hawser::cli {

struct PluginFolder {
  std::string path;
  std::string error;               ///< Why it cannot be read, else empty.
  std::vector<std::string> names;  ///< Names of backends in it, sorted.
};
std::vector<PluginFolder> plugin_folders(std::span<const std::string> paths);

/// Opens, in this agent, the plug-ins of these folders that it has not tried yet, and gives the report of each.
std::vector<BackendReport> try_other_plugins(Agent& agent, std::span<const PluginFolder> folders);

}  // namespace hawser::cli
