#pragma once

// The agent wrapper of Dynamo (`dynamo_memory`'s NixlAgent and NixlBackendConfig): which backends to have, from a
// program or from the environment, and an agent that has them. docs/nixl.md has the grammar of the variables.
//
//   auto config = hawser::compat::NixlBackendConfig::from_env();
//   auto agent = hawser::compat::NixlAgent::from_nixl_backend_config("worker", *config);
//   HAWSER_TRY(agent->require_backend("UCX"));
//   (*agent)->register_memory(list);
//
// Thread rule: a config is a value; an agent is thread-safe. Lifetime: copies of a NixlAgent share one Agent.

#include <cstddef>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/compat/agent.h>
#include <hawser/export.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// Backends and their parameters, in the order in which they are to be created. Names are kept in upper case.
class HAWSER_API NixlBackendConfig {
 public:
  struct Entry {
    std::string name;
    Params params;  ///< Over the plugin's defaults; empty: the defaults.
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  NixlBackendConfig() = default;
  /// Dynamo's `new(map)`: each with its parameters, in the map's order. Of a name that is there in two cases the last
  /// counts.
  explicit NixlBackendConfig(const std::map<std::string, Params>& backends);

  /// DYN_KVBM_NIXL_BACKEND_<NAME>=<bool> and DYN_KVBM_NIXL_BACKEND_<NAME>_<PARAM>=<value> of this process, in
  /// alphabetical order. Errors: kInvalid, all of them in one text.
  static Result<NixlBackendConfig> from_env();
  static Result<NixlBackendConfig> from_environment(const ConfigSources::Texts& environment);

  /// Adds a backend with its defaults; one that is there stays as it is.
  NixlBackendConfig& with_backend(std::string_view name);
  /// Adds a backend, or replaces all its parameters.
  NixlBackendConfig& with_backend_params(std::string_view name, Params params);
  /// Entries of `other` replace those here, a backend's parameters as a whole.
  NixlBackendConfig& merge(const NixlBackendConfig& other);

  std::vector<std::string> backends() const;
  bool has_backend(std::string_view name) const { return backend_params(name) != nullptr; }
  /// Null when there is no such backend. Until the next change.
  const Params* backend_params(std::string_view name) const;
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  friend bool operator==(const NixlBackendConfig&, const NixlBackendConfig&) = default;

 private:
  std::vector<Entry> entries_;
};

/// A backend that could not be created.
struct BackendFailure {
  std::string name;
  Status cause;
};

class HAWSER_API NixlAgent {
 public:
  /// Without backends.
  static Result<NixlAgent> open(std::string_view name, const AgentConfig& config = {});
  /// Strict: all that the config names.
  static Result<NixlAgent> from_nixl_backend_config(std::string_view name, const NixlBackendConfig& backends,
                                                    const AgentConfig& config = {});
  /// Strict: the error lists every failure with its cause.
  static Result<NixlAgent> with_backends(std::string_view name, std::span<const std::string_view> backends,
                                         const AgentConfig& config = {});
  /// Lenient: goes on past failures; `failures` tells of them.
  static Result<NixlAgent> new_with_backends(std::string_view name, std::span<const std::string_view> backends,
                                             const AgentConfig& config = {});

  explicit NixlAgent(Agent agent) : agent_(std::move(agent)) {}

  /// One that is there stays, with a warning when other parameters are asked for that names those in force.
  Status add_backend(std::string_view name) { return add_backend_with_params(name, {}); }
  /// `params` overlay the plugin's defaults; unknown ones warn.
  Status add_backend_with_params(std::string_view name, const Params& params);

  /// The agent's own list, so a backend that was created past this wrapper counts, too. In upper case, in the order
  /// of creation.
  std::vector<std::string> backends() const { return agent_.backend_names(); }
  bool has_backend(std::string_view name) const { return agent_.get_backend(name).has_value(); }
  /// kNotFound, naming the backends that are there.
  Status require_backend(std::string_view name) const;
  /// Of new_with_backends, in order.
  const std::vector<BackendFailure>& failures() const { return failures_; }

  Agent& raw_agent() { return agent_; }
  const Agent& raw_agent() const { return agent_; }
  Agent into_raw_agent() && { return std::move(agent_); }
  Agent* operator->() { return &agent_; }
  const Agent* operator->() const { return &agent_; }
  Agent& operator*() { return agent_; }
  const Agent& operator*() const { return agent_; }

 private:
  std::vector<BackendFailure> create(const NixlBackendConfig& backends);

  Agent agent_;
  std::vector<BackendFailure> failures_;
};

HAWSER_API std::string to_string(const NixlAgent& agent);
HAWSER_API std::ostream& operator<<(std::ostream& out, const NixlAgent& agent);

}  // namespace compat
HAWSER_NAMESPACE_END
