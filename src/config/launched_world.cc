#include <hawser/config.h>
#include <hawser/world.h>

#include <utility>

#include "base/try.h"

HAWSER_NAMESPACE_BEGIN

namespace {

/// torchrun tells one address, and no secret.
void meet_at_master(const ConfigSources& sources, WorldOptions& options) {
  options.seed = launched_meeting(sources);
  options.serves_seed = !options.seed.empty();
  const auto token = sources.environment.find("HAWSER_TOKEN_FILE");
  if (options.serves_seed && token != sources.environment.end()) options.token_file = token->second;
}

}  // namespace

Result<WorldOptions> launched_world(const ConfigSources& sources) {
  HAWSER_TRY_ASSIGN(const LaunchedRank launched, launched_rank(sources));
  HAWSER_TRY_ASSIGN(LoadedConfig config, load_config(sources));
  WorldOptions options;
  options.size = launched.size;
  options.rank = launched.rank;
  for (const ConfigValue& each : config.values) options.origins[each.name] = each.origin;
  for (const char* const its : {"world.rank", "world.size"}) options.origins[its] = launched.launcher;
  options.agent = std::move(config.options);
  options.cost_model = std::move(config.cost_model);
  options.seed = launched_seed(sources);
  options.token_file = launched_token_file(sources);
  if (launched.launcher == "torchrun" && options.seed.empty() && options.agent.directory == nullptr) {
    meet_at_master(sources, options);
  }
  HAWSER_TRY_ASSIGN(options.topology, launched_topology(sources));
  if (!launched.run.empty()) options.name += "." + launched.run;  // Two runs may share a directory.
  return options;
}

HAWSER_NAMESPACE_END
