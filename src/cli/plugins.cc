#include "cli/plugins.h"

#include <algorithm>
#include <filesystem>

namespace hawser::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libhawser_backend_";  // See hawser/plugin.h.
constexpr std::string_view kSuffix = ".so";

}  // namespace

std::vector<PluginFolder> plugin_folders(std::span<const std::string> paths) {
  std::vector<PluginFolder> folders;
  for (const std::string& path : paths) {
    PluginFolder& folder = folders.emplace_back(PluginFolder{.path = path, .error = {}, .names = {}});
    std::error_code error;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
      std::string name = at->path().filename().string();
      if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
      folder.names.push_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
    }
    if (error) folder.error = error.message();
    std::ranges::sort(folder.names);
  }
  return folders;
}

std::vector<BackendReport> try_other_plugins(Agent& agent, std::span<const PluginFolder> folders) {
  std::vector<std::string> known;
  for (const BackendReport& report : agent.backends()) known.push_back(report.name);
  std::vector<BackendReport> others;
  for (const PluginFolder& folder : folders) {
    for (const std::string& name : folder.names) {
      if (std::ranges::find(known, name) != known.end()) continue;
      known.push_back(name);
      (void)agent.add_backend({name, {}});  // Its report says how it went.
      for (BackendReport& report : agent.backends()) {
        if (report.name == name) others.push_back(std::move(report));
      }
    }
  }
  return others;
}

}  // namespace hawser::cli
