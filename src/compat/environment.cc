#include "compat/environment.h"

#include <hawser/config.h>

#include "base/format.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/try.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

// NIXL has no deadlines; what takes longer than this is never heard of again, and its user has given up.
constexpr Duration kDeadline = std::chrono::hours(1);
constexpr std::uint32_t kInboxBytes = std::uint32_t{16} << 20;  // Per peer.
constexpr std::string_view kUcxMode = "HAWSER_NIXL_UCX";

std::string_view value_of(const ConfigSources::Texts& environment, std::string_view variable) {
  const auto found = environment.find(variable);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

/// NIXL_LOG_LEVEL, where Hawser's own variable does not say otherwise.
LogLevel log_level(std::string_view text, LogLevel fallback) {
  if (base::to_lower(text) == "fatal") return LogLevel::kOff;
  const Result<LogLevel> level = base::parse_log_level(text);
  return level ? *level : fallback;
}

/// Where metadata lies: keys are <namespace>/<agent>/<label>.
void read_etcd(const ConfigSources::Texts& environment, EtcdOptions& etcd) {
  constexpr std::string_view kNamespace = "/nixl/agents/";
  std::string_view endpoints = value_of(environment, "NIXL_ETCD_ENDPOINTS");
  etcd.endpoints.clear();
  while (!endpoints.empty()) {
    const std::size_t end = endpoints.find_first_of(",;");
    const std::string_view one = base::trim(endpoints.substr(0, end));
    if (!one.empty()) etcd.endpoints.emplace_back(one);
    endpoints.remove_prefix(end == std::string_view::npos ? endpoints.size() : end + 1);
  }
  const std::string_view named = value_of(environment, "NIXL_ETCD_NAMESPACE");
  etcd.prefix = named.empty() ? kNamespace : named;
  if (!etcd.prefix.ends_with('/')) etcd.prefix += '/';
}

}  // namespace

Status check_ucx_mode(const ConfigSources::Texts& environment) {
  constexpr std::string_view kAdvice =
      "unset it, or set it to auto: UCX is then answered by Hawser's own choice of path";
  const std::string_view text = value_of(environment, kUcxMode);
  const std::string mode = base::to_lower(base::trim(text));
  if (mode.empty() || mode == "auto") return {};
  if (mode == "native") {
    return refusal(NixlCode::kNotSupported, "HAWSER_NIXL_UCX=native", "there is no backend ucx in this build")
        .with_advice(kAdvice);
  }
  return Status(Code::kInvalid, base::format("HAWSER_NIXL_UCX = \"{}\" is neither auto nor native", text))
      .with_advice(kAdvice);
}

bool telemetry_wanted(const ConfigSources::Texts& environment, bool asked) {
  const std::string text = base::to_lower(value_of(environment, "NIXL_TELEMETRY_ENABLE"));
  for (const std::string_view no : {"n", "no", "0", "false", "off"}) {
    if (text == no) return false;
  }
  for (const std::string_view yes : {"y", "yes", "1", "true", "on"}) {
    if (text == yes) return true;
  }
  return asked;
}

Result<AgentOptions> agent_options(std::string_view name, const AgentConfig& config, EtcdOptions* etcd) {
  ConfigSources sources;
  sources.environment = config.environment ? *config.environment : ConfigSources::from_process().environment;
  HAWSER_TRY(check_ucx_mode(sources.environment));
  const std::string nixl_level(value_of(sources.environment, "NIXL_LOG_LEVEL"));
  Result<LoadedConfig> loaded = load_config(sources);
  if (!loaded) return loaded.error();
  *etcd = std::move(loaded->etcd);
  read_etcd(sources.environment, *etcd);
  AgentOptions options = std::move(loaded->options);
  options.name = name;
  options.driven = config.progress_thread;
  if (!sources.environment.contains("HAWSER_DEADLINE")) options.default_deadline = kDeadline;
  // The longest notification should find room although nobody reads at the time.
  if (options.limits.notification_bytes == AgentLimits().notification_bytes) {
    options.limits.notification_bytes = kInboxBytes;
  }
  if (!sources.environment.contains("HAWSER_LOG")) options.log.level = log_level(nixl_level, options.log.level);
  if (config.log) options.log.sink = config.log;
  return options;
}

}  // namespace compat
HAWSER_NAMESPACE_END
