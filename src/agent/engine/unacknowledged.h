#pragma once

// What a session took of its user and the peer's agent is not known to have taken. It is counted when somebody asks, so
// that messages pay nothing for it: by a path that may lose them the link keeps them until they are acknowledged; a
// path without loss tells what the peer has not read (backend::Path::each_untaken). Once such a path is lost, the links
// keep what it held, and Session::adrift its word on what it does not hold whole.
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

/// The path for messages goes: what it knows goes to Session::adrift, but for what its links keep. A path that keeps
/// nothing itself only.
void note_adrift(Session& session);
/// The path for messages was lost, and the session may go on by another one: what the peer has not taken of it is put
/// before what its links keep, as if it had gone by a path that may lose it. The peer's next greeting tells what of it
/// was taken. It may still read the lost path's memory: each message has its number, and is taken once.
void keep_untaken(Session& session);
/// The peer has all that was sent on earlier paths, or it is kept to be sent again.
void forget_adrift(Session& session);

}  // namespace hawser::agent
