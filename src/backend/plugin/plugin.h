#pragma once

// Out-of-tree backends: shared objects behind the C table of include/hawser/plugin.h, as Factories like any other.
//
// A shared object stays loaded until the process ends. What it answers is checked; one that breaks the contract ends
// its paths with kFailed naming it, see plugin_port.h.
//
// Thread rule: thread-safe. Lifetime: factories keep what they need.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hawser/plugin.h>
#include <hawser/status.h>

#include "backend/backend.h"

namespace hawser::backend {

/// Loads libhawser_backend_<name>.so. Errors: kNotFound (no such file, no hawser_plugin_v0; with the loader's words),
/// kUnsupported (another ABI), kInvalid (its tables, its name).
Result<Factory> load_plugin(const std::string& file);

struct FoundPlugins {
  /// By folder, then by name. One that does not load is there too: opening it gives the reason.
  std::vector<Factory> factories;
  std::vector<std::string> warnings;  ///< Folders that cannot be read, names found twice (the first counts).
};
FoundPlugins find_plugins(std::span<const std::string> folders);

/// What a shared object exports, for tests within one program.
using PluginEntry = std::uint32_t(const hawser_plugin_host* host, hawser_plugin_table* out);
/// `origin` names it in errors. `expected_name` is the name that it must have.
Result<Factory> plugin_factory(const std::string& origin, const std::string& expected_name, PluginEntry* entry);

}  // namespace hawser::backend
