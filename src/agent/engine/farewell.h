#pragma once

// Farewell: how a peer is told that it is refused because of a bound, so that its user learns which one.
//
// Thread rule: confined to the lane.

#include <hawser/status.h>

#include "agent/session.h"
#include "backend/backend.h"

namespace hawser::agent {

/// On a path of a peer that is not taken in. Where there is no room for it now, the path just ends.
void say_refused(backend::Path& path, const Status& why);
/// The same for a peer whose session ends.
void say_refused(Session& session, const Status& why);

}  // namespace hawser::agent
