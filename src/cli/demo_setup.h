#pragma once

// The settings on which both sides of the demo must agree. The parent sends them to its child.

#include <cstdint>
#include <string>

#include <hawser/agent.h>

#include "cli/demo_kv.h"
#include "cli/json_out.h"

namespace hawser::cli {

struct DemoSetup {
  KvShape shape;
  std::string backend;  ///< "shm", "tcp", ..., or "auto": all that work here.
  std::string config;   ///< The configuration file, or empty.
  bool is_far = false;  ///< The two are on different hosts: they listen beyond their own, where nothing else is said.
  std::uint64_t seed = 1;
  Duration timeout = std::chrono::seconds(60);  ///< For each pass, and for each answer of the other process.
};

Json to_json(const DemoSetup& setup);
Result<DemoSetup> setup_from(const Json& json);

/// How either side opens its agent. Polled: both loops have nothing else to do.
Result<AgentOptions> agent_options(const DemoSetup& setup, std::string name);

}  // namespace hawser::cli
