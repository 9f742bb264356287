#pragma once

// Counters of an agent that need no lane.
//
// Thread rule: any thread.

#include <hawser/counters.h>

#include "agent/inbox.h"
#include "backend/region_table.h"

namespace hawser::agent {

/// What the user has not taken, and what was dropped.
void count_inbox(const Inbox& inbox, AgentCounters* counters);
void count_regions(const backend::RegionTable& regions, AgentCounters* counters);

}  // namespace hawser::agent
