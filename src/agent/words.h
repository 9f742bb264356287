#pragma once

// Words of this agent's regions that signals come to.
//
// Thread rule: thread-safe. Not under the lane's lock.

#include <cstdint>

#include <hawser/status.h>

#include "agent/lane_access.h"
#include "agent/region.h"

namespace hawser::agent {

/// Good once the word, which lies in that region, is at least so much; kInvalid when the region is closed. The region
/// stays in use while anybody waits for a word of it; closing it ends that.
Status wait_for_word(LaneAccess& lane, LocalRegion& region, std::uint64_t offset, std::uint64_t at_least,
                     Instant deadline) HAWSER_EXCLUDES(in_lane);

}  // namespace hawser::agent
