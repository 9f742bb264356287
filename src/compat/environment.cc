#include "compat/environment.h"

#include <algorithm>

#include <hawser/config.h>

#include "base/format.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/try.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

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

std::string telemetry_note(const ConfigSources::Texts& environment) {
  if (!telemetry_wanted(environment, false)) return {};
  if (!base::trim(value_of(environment, "NIXL_TELEMETRY_EXPORTER")).empty()) return {};
  for (const std::string_view variable : {"NIXL_TELEMETRY_DIR", "NIXL_TELEMETRY_PROMETHEUS_PORT"}) {
    const std::string_view text = value_of(environment, variable);
    if (text.empty()) continue;
    return base::format(
        "{}={}: nothing is exported there. Set NIXL_TELEMETRY_EXPORTER=prometheus to have the figures at /metrics; "
        "get_xfer_telemetry tells of each transfer, and `hawser top` shows an agent's counters",
        variable, text);
  }
  return {};
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
  const bool is_set = std::ranges::any_of(
      loaded->values, [](const ConfigValue& one) { return one.name == "deadline" && one.origin != "default"; });
  if (!is_set) options.default_deadline = kNoDeadline;
  if (!sources.environment.contains("HAWSER_LOG")) options.log.level = log_level(nixl_level, options.log.level);
  if (config.log) options.log.sink = config.log;
  // NIXL's clients expect to be reached from other hosts with nothing set; their metadata, which travels by a way of
  // their own, is what TLS proves both ends by.
  for (const char* const backend : {"tcp", "quic"}) options.backend_params[backend].try_emplace("listen", "auto");
  return options;
}

}  // namespace compat
HAWSER_NAMESPACE_END
