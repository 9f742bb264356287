#pragma once

// The end of a rank of a sparse world: the others get what it has said, and it relays until they do not need it.
//
// Thread rule: thread-safe, not under the lane.

#include "runtime/rank_seat.h"

namespace hawser::runtime {

/// Waits until the others have all that this rank said. `leaves`: then tells all that it leaves. `waits`: then waits
/// until all that live have said so. False: not by the deadline.
bool say_farewell(RankSeat& seat, bool leaves, bool waits, Instant until);

}  // namespace hawser::runtime
