#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "base/quantity.h"
#include "config/launched_rank.h"
#include "config/options.h"
#include "config/settings.h"

namespace hawser::config {
namespace {

constexpr std::string_view kPrefix = "HAWSER_";
/// Variables of the compat layer, which reads them itself.
constexpr std::string_view kNixlPrefix = "HAWSER_NIXL_";
/// Variables of systems that Hawser stands in for. The layers that do so read them.
constexpr std::string_view kForeignPrefixes[] = {"NIXL_", "DYN_KVBM_NIXL_"};
constexpr std::string_view kBackendVariable = "HAWSER_BACKEND_";
/// Where a user's sockets belong, by the XDG base directory specification. An absolute path, or it does not count.
constexpr std::string_view kRuntimeVariable = "XDG_RUNTIME_DIR";

/// "tcp_lanes" with tcp known is "backend.tcp.lanes". The longest name wins: with my and my_rdma known, my_rdma_qps is
/// a parameter of my_rdma.
bool split_parameter(std::string_view rest, std::span<const std::string> backends, std::string& name) {
  std::string_view best;
  for (const std::string& backend : backends) {
    const bool matches = rest.size() > backend.size() + 1 && rest.starts_with(backend) && rest[backend.size()] == '_';
    if (matches && backend.size() > best.size()) best = backend;
  }
  if (best.empty()) return false;
  name = base::format("{}{}.{}", kBackendPrefix, best, rest.substr(best.size() + 1));
  return true;
}

std::string join(std::span<const std::string> words) {
  std::vector<std::string> sorted(words.begin(), words.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::string text;
  for (const std::string& word : sorted) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

/// `entry` is NAME=value.
bool is_wanted(std::string_view variable) {
  if (tells_of_rank(variable.substr(0, variable.find('=')))) return true;
  return variable.starts_with(kPrefix) || variable.starts_with(kRuntimeVariable) ||
         std::any_of(std::begin(kForeignPrefixes), std::end(kForeignPrefixes),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

}  // namespace

Settings read_environment(const ConfigSources::Texts& environment, std::span<const std::string> backends,
                          Findings& findings) {
  Settings settings;
  for (const auto& [variable, text] : environment) {
    if (variable == kRuntimeVariable && text.starts_with('/')) settings["backend.shm.runtime_dir"] = {text, variable};
    if (!variable.starts_with(kPrefix) || variable == "HAWSER_CONFIG" || text.empty()) continue;
    if (variable.starts_with(kNixlPrefix) || tells_of_rank(variable)) continue;
    if (const Option* option = find_variable(variable)) {
      settings[std::string(option->name)] = {text, variable};
      continue;
    }
    std::string name;
    if (!variable.starts_with(kBackendVariable)) {
      findings.warnings.push_back(base::format("{}: there is no such variable.{}", variable, variable_meant(variable)));
    } else if (split_parameter(base::to_lower(variable.substr(kBackendVariable.size())), backends, name)) {
      settings[name] = {text, variable};
    } else {
      findings.warnings.push_back(
          base::format("{}: names no parameter of a known backend ({})", variable, join(backends)));
    }
  }
  return settings;
}

}  // namespace hawser::config

HAWSER_NAMESPACE_BEGIN

ConfigSources ConfigSources::from_process() {
  ConfigSources sources;
  // The only place of the library that reads the process's environment.
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::size_t equals = entry.find('=');
    if (!config::is_wanted(entry) || equals == std::string_view::npos) continue;
    sources.environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return sources;
}

HAWSER_NAMESPACE_END
