#include "agent/default_backends.h"

#include <algorithm>

#include "agent/core.h"
#include "backend/plugin/plugin.h"
#include "backend/tcp/factory.h"

namespace hawser::agent {

std::vector<backend::Factory> all_backends(std::span<const std::string> plugin_paths, const base::Logger& log) {
  std::vector<backend::Factory> all = default_backends();
  backend::FoundPlugins found = backend::find_plugins(plugin_paths);
  for (const std::string& warning : found.warnings) HAWSER_LOG(log, kWarn, "{}", warning);
  for (backend::Factory& plugin : found.factories) {
    if (std::ranges::find(all, plugin.name, &backend::Factory::name) == all.end()) {
      all.push_back(std::move(plugin));
    } else {
      HAWSER_LOG(log, kWarn, "plug-in {} is passed over: a backend of the library has that name", plugin.name);
    }
  }
  return all;
}

Result<std::string> resolve_address(std::string_view address, Instant deadline) {
  return backend::resolve_tcp_address(address, deadline - Clock::steady().now());
}

}  // namespace hawser::agent
