#pragma once

// The two lists of a request joined as they are read, with nothing kept of them in between. Most requests that are made
// without prepared lists can be: all blocks lie in one registration of the peer's and in a few of this agent's.
//
// Thread rule: the agent's mutex while it is made. Lifetime: keeps the regions' registrations alive, never the memory.

#include <memory>
#include <optional>
#include <vector>

#include "agent/inner_plans.h"
#include "compat/local_book.h"
#include "compat/remote.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct JoinedLists {
  Peer peer;
  BackendMask backends = kAllBackends;  ///< That can all of both.
  agent::inner::MadePieces made;
};

/// Of as many descriptors on either side, at most plan::kPairsMax. None where they are not of the kind that this can,
/// or something is wrong with them: resolving the lists and what follows it say what.
std::optional<JoinedLists> join_lists(const Book<LocalSpot>& ours, const XferDescList& local, const Remote& theirs,
                                      const XferDescList& remote, BackendMask backends);

}  // namespace compat
HAWSER_NAMESPACE_END
