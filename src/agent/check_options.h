#pragma once

// Tells whether an agent can be opened with these options.
//
// Thread rule: a pure function.

#include <hawser/agent.h>

namespace hawser::agent {

/// Good, or kInvalid that names the first option that is wrong, its value, and what it may be.
Status check_options(const AgentOptions& options);

}  // namespace hawser::agent
