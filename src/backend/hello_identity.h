#pragma once

// An agent's Identity, to and from the hello by which a backend tells it.
//
// Thread rule: pure functions.

#include "backend/backend.h"
#include "wire/hello.h"

namespace hawser::backend {

/// A hello that says who this is, and nothing else. It does not say when the agent was born.
wire::Hello hello_of(const Identity& identity);
/// The agent that said the hello. `born` is 0 where the hello does not say it.
Identity identity_of(const wire::Hello& hello);

}  // namespace hawser::backend
