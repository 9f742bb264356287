#pragma once

// Survives a fork: in the child the agents of the parent are dead, their descriptors are closed, the parent notices
// nothing. The one process-wide table of the library, because pthread_atfork knows no context.
//
// Thread rule: thread-safe.

#include <sys/types.h>

namespace hawser::agent {

class Core;

/// From construction to `forget_core` a fork disowns the core's descriptors in the child.
void remember_core(Core* core);
void forget_core(Core* core);

/// Whether this process is the one that loaded the library's state, as cheap as one load.
bool is_forked_child();
/// The process that opened the agents, for errors in a child.
pid_t opener_pid();

}  // namespace hawser::agent
