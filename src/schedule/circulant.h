#pragma once

// All-gather and reduce-scatter on circulant graphs: any number of ranks in ceil(log2(ranks)) rounds, and each rank
// sends and receives each block but one exactly once, which is the least there can be.
//
// Source: J. L. Träff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv 2410.14234.

#include "schedule/members.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// Afterwards block `me.rank` of `buffer` is combined of all ranks' and the other blocks are used up. For operations
/// that commute: in which order ranks are combined differs between blocks.
void reduce_scatter_blocks(Schedule& schedule, const Members& me, const Blocks& blocks, Buffer buffer);
/// Before, block `me.rank` of `buffer` is there; afterwards all are.
void all_gather_blocks(Schedule& schedule, const Members& me, const Blocks& blocks, Buffer buffer);

}  // namespace hawser::schedule
