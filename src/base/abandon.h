#pragma once

// Gives up a thread of the parent's, in a forked child. There is no such thread to join. To detach it is wrong, too:
// the C library may have given its place to a thread of the child, which would be detached instead.
//
// Thread rule: as std::thread.

#include <thread>
#include <utility>

namespace hawser::base {

/// What little it holds is leaked, once for each child.
inline void abandon(std::thread& thread) {
  if (thread.joinable()) (void)new std::thread(std::move(thread));
}

}  // namespace hawser::base
