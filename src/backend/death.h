#pragma once

// Death: which ends of a path say that the peer's incarnation is gone for good.
//
// Thread rule: pure functions.

#include <hawser/status.h>

namespace hawser::backend {

/// The cause of a kPathDown with Scope::kPeer whose peer only kept silent: stopped, or cut off. It may come back.
inline Status silence() { return Status(Code::kTimedOut, "no heartbeat was answered"); }

/// Whether `why`, of a kPathDown, says that the incarnation is gone for good.
inline bool is_certain_death(const Status& why) {
  return why.scope() == Scope::kPeer && why.code() == Code::kDisconnected && why.cause().code() != silence().code();
}

}  // namespace hawser::backend
