#include <hawser/compat/nixl_agent.h>

#include <algorithm>
#include <ostream>

#include "base/format.h"
#include "base/inside.h"
#include "base/try.h"
#include "compat/core.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text.empty() ? "none" : text;
}

std::string text_of(const Params& params) {
  std::string text;
  for (const auto& [key, value] : params) {
    text.append(text.empty() ? "" : ", ").append(key).append("=").append(value);
  }
  return text;
}

/// One error of all.
Status all_failures(std::string_view agent, const std::vector<BackendFailure>& failures) {
  if (failures.empty()) return {};
  std::string text;
  for (const BackendFailure& failure : failures) {
    text += base::format("{}{}: {}", text.empty() ? "" : "; ", failure.name, failure.cause.to_string());
  }
  return refusal(NixlCode::kBackend, base::format("agent {}", agent),
                 base::format("{} backends failed: {}", failures.size(), text), failures.front().cause);
}

NixlBackendConfig config_of(std::span<const std::string_view> names) {
  NixlBackendConfig config;
  for (const std::string_view name : names) config.with_backend(name);
  return config;
}

}  // namespace

Result<NixlAgent> NixlAgent::open(std::string_view name, const AgentConfig& config) {
  HAWSER_TRY_ASSIGN(Agent agent, Agent::open(name, config));
  return NixlAgent(std::move(agent));
}

Result<NixlAgent> NixlAgent::from_nixl_backend_config(std::string_view name, const NixlBackendConfig& backends,
                                                      const AgentConfig& config) {
  HAWSER_TRY_ASSIGN(NixlAgent agent, open(name, config));
  HAWSER_TRY(all_failures(name, agent.create(backends)));
  return agent;
}

Result<NixlAgent> NixlAgent::with_backends(std::string_view name, std::span<const std::string_view> backends,
                                           const AgentConfig& config) {
  return from_nixl_backend_config(name, config_of(backends), config);
}

Result<NixlAgent> NixlAgent::new_with_backends(std::string_view name, std::span<const std::string_view> backends,
                                               const AgentConfig& config) {
  HAWSER_TRY_ASSIGN(NixlAgent agent, open(name, config));
  agent.failures_ = agent.create(config_of(backends));
  return agent;
}

std::vector<BackendFailure> NixlAgent::create(const NixlBackendConfig& backends) {
  std::vector<BackendFailure> failures;
  for (const NixlBackendConfig::Entry& entry : backends) {
    Status status = add_backend_with_params(entry.name, entry.params);
    if (!status.ok()) failures.push_back({.name = entry.name, .cause = std::move(status)});
  }
  return failures;
}

Status NixlAgent::add_backend_with_params(std::string_view name, const Params& params) {
  std::optional<Backend> there = agent_.get_backend(name);
  if (!there) {
    const Result<Backend> made = agent_.create_backend(name, params);
    if (made) return {};
    there = agent_.get_backend(name);  // Somebody else may have been faster.
    if (!there) return made.error();
  }
  HAWSER_TRY_ASSIGN(const PluginParams in_force, agent_.get_backend_params(*there));
  const bool differs = std::any_of(params.begin(), params.end(), [&](const auto& wanted) {
    const auto found = in_force.params.find(wanted.first);
    return found == in_force.params.end() || found->second != wanted.second;
  });
  if (differs) {
    HAWSER_LOG(core_of(agent_)->log(), kWarn, "add_backend: {} is there with {}; {} changes nothing", there->name(),
               text_of(in_force.params), text_of(params));
  }
  return {};
}

Status NixlAgent::require_backend(std::string_view name) const {
  if (has_backend(name)) return {};
  return refusal(NixlCode::kNotFound, "require_backend",
                 base::format("agent {} has no backend {}; it has: {}", agent_.name(), name, list_of(backends())));
}

std::string to_string(const NixlAgent& agent) { return to_string(agent.raw_agent()); }

std::ostream& operator<<(std::ostream& out, const NixlAgent& agent) { return out << to_string(agent); }

}  // namespace compat
HAWSER_NAMESPACE_END
