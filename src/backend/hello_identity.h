#pragma once

// Who an agent is, as the hellos of backends tell it.
//
// Thread rule: pure functions.

#include "backend/backend.h"
#include "wire/hello.h"

namespace hawser::backend {

/// A hello that says who this is, and nothing else. It does not say when the agent was born.
wire::Hello hello_of(const Identity& identity);
/// Who said it, with `born` where it was said.
Identity identity_of(const wire::Hello& hello);

}  // namespace hawser::backend
