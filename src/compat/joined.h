#pragma once

// The two lists of a request joined as they are read, with nothing kept of them in between. Most requests that are made
// without prepared lists can be: all blocks lie in one registration of the peer's and in a few of this agent's.
//
// Thread rule: the agent's mutex while it is made. Lifetime: keeps the regions' registrations alive, never the memory.

#include <memory>
#include <vector>

#include "agent/inner_plans.h"
#include "compat/core.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct JoinedLists {
  Peer peer;
  BackendMask backends = kAllBackends;  ///< That can all of both.
  agent::inner::MadePieces made;
};

}  // namespace compat
HAWSER_NAMESPACE_END
