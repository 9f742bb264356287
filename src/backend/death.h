#pragma once

// Death: which ends of a path say that the peer's incarnation is gone for good.
//
// Thread rule: pure functions.

#include <hawser/status.h>

namespace hawser::backend {

/// Whether `why`, of a kPathDown, says that the incarnation is gone for good. A peer that only kept silent (kTimedOut)
/// is given up as well, but it may come back.
inline bool is_certain_death(const Status& why) {
  return why.scope() == Scope::kPeer && why.code() == Code::kDisconnected;
}

}  // namespace hawser::backend
