#pragma once

// Binomial trees: ceil(log2(ranks)) rounds, for what is small.
//
// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.

#include "schedule/members.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// What the member of number 0 has in `data` comes to all.
void broadcast_tree(Schedule& schedule, const Members& me, Slice data);
/// The combination of all members' `data`, in the order of their numbers, comes to number 0; the others' is used up.
void reduce_tree(Schedule& schedule, const Members& me, Slice data);
/// Of the blocks that number 0 has in `buffer`, each member gets its own, and on the way those of others.
void scatter_tree(Schedule& schedule, const Members& me, const Blocks& blocks, Buffer buffer);

}  // namespace hawser::schedule
