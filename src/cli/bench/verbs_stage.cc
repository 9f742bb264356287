#include "cli/bench/verbs_stage.h"

#include "base/try.h"

namespace hawser::cli::bench {

using backend::verbs::RawLoopDevices;

Result<VerbsStage> verbs_stage(const std::string& config, Turns turns) {
  HAWSER_TRY_ASSIGN(const RawLoopDevices devices, backend::verbs::find_raw_loop_devices());
  HAWSER_TRY_ASSIGN(const AgentOptions options, bench_agent_options(config, {}, "bench", false));
  const auto params = options.backend_params.find("verbs");
  const bool chosen = params != options.backend_params.end() && params->second.contains("devices");
  const bool sleeping = turns == Turns::kSleeping;
  VerbsStage found{.spec = {.key = sleeping ? "verbs driven" : "verbs", .backends = {verbs()}, .driven = sleeping},
                   .devices = devices};
  if (chosen) return found;
  found.spec.backends = {verbs({{"devices", devices.near}})};
  found.spec.target_backends = {verbs({{"devices", devices.far}})};
  return found;
}

RawLoopDevices devices_of(Stage& stage, const RawLoopDevices& otherwise) {
  for (const PathCounters& path : stage.agent().counters().paths) {
    if (path.queue_pairs.empty()) continue;
    RawLoopDevices used{path.queue_pairs[0].device, otherwise.far};
    if (used.near != otherwise.near) used.far = used.near;  // The user's own choice: seen from here alone.
    return used;
  }
  return otherwise;
}

}  // namespace hawser::cli::bench
