#pragma once

// What calls about a peer answer, and what transfers to it end with, once it is down.
//
// Thread rule: thread-safe.

#include <hawser/status.h>

#include "agent/peer_core.h"

namespace hawser::agent {

/// `cause` put the peer down. It says whether the peer is gone for certain, was given up, or was forgotten.
Status gone_status(const PeerCore& peer, const Status& cause);
/// As above, with the cause that the peer keeps; no buffer was touched.
Status down_status(PeerCore& peer);

}  // namespace hawser::agent
