#pragma once

// The agent's counters, put together from those who count.
//
// Thread rule: as each says.

#include <cstdint>
#include <span>

#include <hawser/counters.h>

#include "agent/engine/open_backend.h"
#include "agent/inbox.h"
#include "agent/lane_access.h"
#include "agent/past_flow.h"
#include "backend/region_table.h"

namespace hawser::agent {

struct Session;

/// Peers, paths, devices, strangers, and the totals of all sessions that there are and were.
void count_traffic(const PastFlow& past, std::span<Session* const> sessions, std::span<const OpenBackend> backends,
                   AgentCounters* counters) HAWSER_REQUIRES(in_lane);
/// What the user has not taken, and what was dropped. Any thread.
void count_inbox(const Inbox& inbox, AgentCounters* counters);
/// Any thread.
void count_regions(const backend::RegionTable& regions, AgentCounters* counters);

}  // namespace hawser::agent
