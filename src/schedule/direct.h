#pragma once

// Each pair of ranks exchanges what it has for one another, and nothing else: one step, `ranks - 1` messages, a few at
// a time. Where results must have the same bits whatever the algorithm, the place and the number of bytes, this is the
// one: each element is combined at one rank, of all ranks' in one fixed binary tree.

#include "schedule/members.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// So many peers are spoken to in one round.
inline constexpr std::uint32_t kPeersAtOnce = 8;

/// Block r of `out` goes to rank r, and its block for us into block r of `in`. Our own is copied.
void exchange_blocks(Schedule& schedule, const Members& me, const Blocks& out, Buffer from, const Blocks& in,
                     Buffer into);
/// `result` is block `me.rank` of all members' `from`, combined in the fixed tree. `from` keeps what it has, unless
/// `result` lies in it.
void reduce_scatter_fixed(Schedule& schedule, const Members& me, const Blocks& blocks, Buffer from, Slice result);
/// All blocks come to the `buffer` of the member with the number `root`, those of the others from their `own`; and the
/// way back.
void gather_direct(Schedule& schedule, const Members& me, std::uint32_t root, const Blocks& blocks, Slice own,
                   Buffer buffer);
void scatter_direct(Schedule& schedule, const Members& me, std::uint32_t root, const Blocks& blocks, Buffer buffer,
                    Slice own);

}  // namespace hawser::schedule
