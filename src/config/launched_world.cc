#include <hawser/config.h>
#include <hawser/world.h>

#include <utility>

#include "base/try.h"

HAWSER_NAMESPACE_BEGIN

Result<WorldOptions> launched_world(const ConfigSources& sources) {
  HAWSER_TRY_ASSIGN(const LaunchedRank launched, launched_rank(sources));
  HAWSER_TRY_ASSIGN(LoadedConfig config, load_config(sources));
  WorldOptions options;
  options.size = launched.size;
  options.rank = launched.rank;
  options.agent = std::move(config.options);
  options.cost_model = std::move(config.cost_model);
  options.seed = launched_seed(sources);
  options.token_file = launched_token_file(sources);
  HAWSER_TRY_ASSIGN(options.topology, launched_topology(sources));
  if (!launched.run.empty()) options.name += "." + launched.run;  // Two runs may share a directory.
  return options;
}

HAWSER_NAMESPACE_END
