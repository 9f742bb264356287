#include "cli/demo_setup.h"

#include "base/try.h"
#include "cli/command.h"
#include "cli/demo_control.h"

namespace hawser::cli {

Json to_json(const DemoSetup& setup) {
  Json json = control_message("setup");
  json["shape"] = to_json(setup.shape);
  json["backend"] = setup.backend;
  json["config"] = setup.config;
  json["is_far"] = setup.is_far;
  json["seed"] = setup.seed;
  json["timeout_ns"] = setup.timeout.count();
  return json;
}

Result<DemoSetup> setup_from(const Json& json) {
  DemoSetup setup;
  HAWSER_TRY_ASSIGN(setup.shape, shape_from(json.value("shape", Json::object())));
  setup.backend = json.value("backend", "");
  setup.config = json.value("config", "");
  setup.is_far = json.value("is_far", false);
  setup.seed = json.value("seed", std::uint64_t{1});
  setup.timeout = Duration(json.value("timeout_ns", std::int64_t{60'000'000'000}));
  return setup;
}

Result<AgentOptions> agent_options(const DemoSetup& setup, std::string name) {
  HAWSER_TRY_ASSIGN(LoadedConfig config, configuration(setup.config));
  AgentOptions options = std::move(config.options);
  options.name = std::move(name);
  options.default_deadline = setup.timeout;
  options.directory.reset();  // The two exchange their cards over the control line.
  options.backends.clear();
  if (setup.backend != "auto") options.backends = {{setup.backend, {}}};
  if (!setup.is_far) return options;
  for (const char* const backend : {"tcp", "quic"}) options.backend_params[backend].try_emplace("listen", "auto");
  return options;
}

}  // namespace hawser::cli
