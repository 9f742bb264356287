#pragma once

// Survives a fork: in the child the agents of the parent are dead, their descriptors are closed, the parent notices
// nothing. The one process-wide table of the library, because pthread_atfork knows no context.
//
// Thread rule: thread-safe.

#include <cstdint>

namespace hawser::agent {

class Core;

/// From construction to `forget_core` a fork disowns the core's descriptors in the child.
void remember_core(Core* core);
void forget_core(Core* core);

/// How many forks lie between this process and the one that loaded the library; as cheap as one load. What was made
/// when there were fewer belongs to a parent.
std::uint32_t forks_so_far();

}  // namespace hawser::agent
