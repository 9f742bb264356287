#pragma once

// Survives a fork: in the child the agents of the parent are dead, their descriptors are closed, the parent notices
// nothing. The one process-wide table of the library, because pthread_atfork knows no context.
//
// Thread rule: thread-safe.

#include <atomic>
#include <cstdint>

namespace hawser::agent {

class Core;

/// From construction to `forget_core` a fork disowns the core's descriptors in the child.
void remember_core(Core* core);
void forget_core(Core* core);

namespace detail {
extern std::atomic<std::uint32_t> forks;
}

/// How many forks lie between this process and the one that called watch_forks() first; as cheap as one load. What was
/// made when there were fewer belongs to a parent.
inline std::uint32_t forks_so_far() { return detail::forks.load(std::memory_order_relaxed); }

/// The same, for one who will compare with it: from the first call on forks are counted.
std::uint32_t watch_forks();

}  // namespace hawser::agent
