#pragma once

// Recursive doubling: after round k each rank knows of 2^k ranks. For what is small, and for prefixes.
//
// Ranks are combined in their order, so operations need not commute; and both sides of an exchange combine the same two
// in the same order, so the results have the same bits everywhere.

#include "schedule/members.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// `data` is combined of all members' at all of them. Where they are no power of two, the first ones pair up first.
void all_reduce_doubling(Schedule& schedule, const Members& me, Slice data);
/// `data` is combined of the members' up to this one's. Inclusive prefixes; Hillis and Steele, 1986.
void scan_doubling(Schedule& schedule, const Members& me, Slice data);
/// `data` is combined of the members' before this one's; number 0 keeps what it has.
void exclusive_scan_doubling(Schedule& schedule, const Members& me, Slice data);
/// Nobody's schedule ends before all have begun theirs. Dissemination: D. Hensgen, R. Finkel, U. Manber, 1988.
void barrier_dissemination(Schedule& schedule, const Members& me);

}  // namespace hawser::schedule
