#pragma once

// Trials of paths: that one was agreed upon says little, for a device may break whenever it is used. Only after one
// that worked do pauses begin anew.
//
// Thread rule: confined to the lane.

#include <cstddef>

#include <hawser/time.h>

#include "agent/session.h"
#include "proto/backoff.h"

namespace hawser::agent {

/// The path, which was up, was lost.
void judge_trial(Session& session, PathEntry& entry, std::size_t backends, Instant now);
/// Longer after each path in a row that did not work, and still with time for some tries before the peer is given up.
proto::BackoffOptions pauses_before_opening(const Session& session, Duration peer_timeout);

}  // namespace hawser::agent
