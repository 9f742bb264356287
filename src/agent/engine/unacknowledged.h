#pragma once

// What a session took of its user and the peer's agent is not known to have taken. It is counted when somebody asks, so
// that messages pay nothing for it: by a path that may lose them the link keeps them until they are acknowledged; a
// path without loss tells what the peer has not read (backend::Path::each_untaken), and once such a path is lost, its
// word is kept in Session::adrift.
//
// Thread rule: confined to the lane.

#include <cstdint>
#include <vector>

#include <hawser/peer.h>

#include "agent/session.h"

namespace hawser::agent {

/// Of each channel of users on which anything was sent: the number of the last message of which it is known that the
/// peer's agent took it and all before it.
std::vector<Acknowledged> acknowledged_of(const Session& session);
std::uint64_t acknowledged_on(const Session& session, std::uint32_t channel);

/// The path for messages goes: what it knows goes to Session::adrift. A path that keeps nothing itself only.
void note_adrift(Session& session);
/// The peer has all that was sent on earlier paths, or it is kept to be sent again.
void forget_adrift(Session& session);

}  // namespace hawser::agent
