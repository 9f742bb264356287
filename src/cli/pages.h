#pragma once

// Where the status pages of this user's agents are, and a look at them.
//
// Thread rule: any thread.

#include <string>
#include <vector>

#include <hawser/status.h>

#include "cli/top_view.h"
#include "cli/world_view.h"

namespace hawser::cli {

/// `folder`, or where the configuration has agents put their pages. Errors: those of the configuration.
Result<std::vector<std::string>> page_folders(const std::string& config_file, const std::string& folder);

/// By name; `name`: those agents only, unless it is empty. With `dead` those that died within the last hour, too.
Look look_at(const std::vector<std::string>& folders, const std::string& name, bool dead);

/// Whose flight recorders are wanted.
enum class Recorded { kWorld, kAgent, kAll };
/// The flight recorders of ranks of the world `name`, or of all worlds of the agent `name` (its own ranks and those of
/// others on this host), or of all worlds, as far as they can be read. Where no rank of a formation lives it is left
/// out, unless `dead`.
std::vector<WorldLook> look_at_worlds(const std::vector<std::string>& folders, Recorded of, const std::string& name,
                                      bool dead);
/// The flight recorders of this agent, by name of the world.
std::vector<runtime::Flight> worlds_on(const std::vector<WorldLook>& all, const AgentLook& agent);

}  // namespace hawser::cli
