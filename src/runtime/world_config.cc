#include "runtime/world_config.h"

#include <utility>

#include "base/quantity.h"
#include "runtime/recovery.h"

namespace hawser::runtime {
namespace {

/// One row after the other.
class Rows {
 public:
  Rows(const WorldOptions& options, std::string_view otherwise) : options_(options), otherwise_(otherwise) {}

  /// An option of the world. Without an origin that was told it came from the caller, or is the default.
  void add(std::string name, std::string value, bool is_default) {
    add(std::move(name), std::move(value), is_default, "caller");
  }
  /// An option of its agent.
  void add_agents(std::string name, std::string value, bool is_default) {
    add(std::move(name), std::move(value), is_default, otherwise_);
  }
  void add_found(std::string name, std::string value, std::string origin) {
    rows_.push_back({.name = std::move(name), .value = std::move(value), .origin = std::move(origin)});
  }
  std::vector<ConfigValue> take() { return std::move(rows_); }

 private:
  void add(std::string name, std::string value, bool is_default, std::string_view otherwise) {
    const auto told = options_.origins.find(name);
    // The program may have changed what was told.
    const bool is_told = told != options_.origins.end() && (told->second != "default" || is_default);
    std::string origin(is_told ? std::string_view(told->second) : is_default ? "default" : otherwise);
    add_found(std::move(name), std::move(value), std::move(origin));
  }

  const WorldOptions& options_;
  const std::string_view otherwise_;
  std::vector<ConfigValue> rows_;
};

std::string text_of(Security level) {
  switch (level) {
    case Security::kDefault:
      return "default";
    case Security::kNone:
      return "none";
    case Security::kAuthenticate:
      return "authenticate";
    case Security::kEncrypt:
      return "encrypt";
  }
  return "unknown";
}

std::string text_of(bool is_on) { return is_on ? "true" : "false"; }

std::string backends_of(const AgentOptions& agent) {
  std::string text;
  for (const BackendSpec& each : agent.backends) text += (text.empty() ? "" : ",") + each.name;
  return text.empty() ? "all" : text;
}

std::string pool_of(const BufferPool& pool) {
  if (!pool.valid()) return "none";
  std::string text;
  for (const BufferPool::TierStatistics& tier : pool.statistics().tiers) {
    text += (text.empty() ? "" : ", ") + std::to_string(tier.count) + " of " + base::format_size(tier.bytes);
  }
  return text;
}

void add_agents(Rows& rows, const AgentOptions& agent) {
  const AgentOptions usual;
  rows.add_agents("backends", backends_of(agent), agent.backends.empty());
  rows.add_agents("security", text_of(agent.security), agent.security == usual.security);
  rows.add_agents("heartbeat", base::format_duration(agent.heartbeat), agent.heartbeat == usual.heartbeat);
  rows.add_agents("peer_timeout", base::format_duration(agent.peer_timeout), agent.peer_timeout == usual.peer_timeout);
  rows.add_agents("deadline", base::format_duration(agent.default_deadline),
                  agent.default_deadline == usual.default_deadline);
  rows.add_agents("adopt", text_of(agent.adopt), agent.adopt == usual.adopt);
  rows.add_agents("status_page", agent.status_page, agent.status_page == usual.status_page);
}

}  // namespace

std::string place_of(const WorldOptions& options) {
  if (!options.seed.empty()) {
    std::string_view address = options.seed;
    address = address.substr(0, address.find('#'));
    return "seed " + std::string(address.substr(address.find('@') + 1));
  }
  if (options.store.get) return "a store";
  if (options.agent.directory) return "directory of kind " + std::string(options.agent.directory->kind());
  return "this process";
}

std::vector<ConfigValue> config_of(const WorldOptions& options, const WorldFacts& facts) {
  const WorldOptions usual;
  Rows rows(options, facts.is_guest ? "agent" : "caller");
  rows.add("world.name", options.name, options.name == usual.name);
  rows.add("world.size", std::to_string(options.size), false);
  rows.add("world.rank", std::to_string(options.rank), false);
  rows.add("world.place", facts.place, facts.place == "this process");
  rows.add("world.driven", text_of(options.driven), options.driven);
  rows.add("world.topology", to_string(options.topology), options.topology.kind == Topology::Kind::kFull);
  rows.add("world.recovery", std::string(to_string(options.recovery)), options.recovery == usual.recovery);
  const bool recovers = options.recovery == RecoveryPolicy::kAutomatic;
  const bool has_majority = options.quorum == Quorum::kMajority;
  rows.add("world.quorum", has_majority ? "majority" : "none", has_majority == recovers);
  rows.add("world.join_timeout", base::format_duration(options.join_timeout),
           options.join_timeout == usual.join_timeout);
  rows.add("world.timeout", base::format_duration(options.timeout), options.timeout == usual.timeout);
  rows.add("world.pool", pool_of(options.pool), !options.pool.valid());
  const bool is_built_in = facts.costs == "built in";
  // "told by rank 2: message_ns = ...": who told it is where it came from.
  const std::size_t colon = facts.costs.find(':');
  rows.add_found("cost_model", is_built_in || colon == std::string::npos ? facts.costs : facts.costs.substr(colon + 2),
                 is_built_in ? "default" : facts.costs.substr(0, colon));
  rows.add_found("name", facts.agent, facts.is_guest ? "agent" : "world.name and world.rank");
  add_agents(rows, options.agent);
  return rows.take();
}

}  // namespace hawser::runtime
