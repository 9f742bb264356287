#pragma once

// A leaf of the inner door (inner.h) for layers that use the agent's identity beside it: one Authenticator for both,
// and a RevocationWatch, which looks in the agent's directory though nobody runs the agent.
//
// Thread rule: thread-safe; RevocationWatch has its own.

#include <memory>

#include <hawser/agent.h>

#include "agent/revocation_watch.h"
#include "identity/authenticator.h"

namespace hawser::agent::inner {

/// Agent::open with an identity that the caller uses, too. Null: as Agent::open.
Result<Agent> open_with_identity(AgentOptions options, std::shared_ptr<identity::Authenticator> authenticator);

}  // namespace hawser::agent::inner
