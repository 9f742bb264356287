#pragma once

// What the parameters of a backend that is created say about Hawser's own agent and backends. What the user of the
// machine says about these goes before, and an agent that is open stays as it is: both are told in the log.
//
// Thread rule: pure functions, but for the log.

#include <string>

#include <hawser/agent.h>
#include <hawser/compat/agent.h>

#include "base/log.h"
#include "compat/plugins.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct BackendWish {
  AgentOptions options;  ///< To open the agent with.
  Params file;           ///< For the backend file.
  std::string rdma;      ///< What asked for RDMA; empty: nothing.
};

/// `set`: what the user of the machine said. `is_interface` as in choose_for_ucx.
Result<BackendWish> read_wish(const AgentOptions& set, const Plugin& plugin, const Params& given, bool is_open,
                              bool (*is_interface)(const std::string& name), const base::Logger& log);
/// `given`, completed by the defaults of the plugin. Keys that it does not know are told.
Params params_in_force(const Plugin& plugin, const Params& given, const base::Logger& log);

}  // namespace compat
HAWSER_NAMESPACE_END
