#pragma once

// What the end of a session says of the peer.
//
// Thread rule: a pure function.

#include <hawser/status.h>

namespace hawser::runtime {

/// Whether a session's end proves that the peer is dead. Silence proves nothing.
inline bool proves_death(const Status& gone) {
  const Status why = gone.cause();
  return why.code() == Code::kDisconnected && why.scope() != Scope::kPath;
}

}  // namespace hawser::runtime
