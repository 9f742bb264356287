#pragma once

// Collectives of ranks that read each other's buffers where they lie. All have told where that is when these begin.
// A rank stores into its own output only.
//
// Between two ranks each step is one of three, and meetings keep them apart: all have what they combine, all have read,
// and all have heard that. The last is what makes a result count: a rank that says it had not ended, nor given its
// buffers back, when the others had read them. A rank that fails before says nothing, and so the others fail, too.

#include "schedule/members.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// Each member combines its block of all inputs, its own first and then those of the members after it, in order. Then
/// all read the blocks of the others. The input may be the output.
void all_reduce_mapped(Schedule& schedule, const Members& me, const Blocks& blocks);
/// Its two halves: `result` is what the member's own block of all inputs comes to, and the outputs' blocks come to all.
void combine_mapped(Schedule& schedule, const Members& me, Slice block, Slice result);
void gather_mapped(Schedule& schedule, const Members& me, const Blocks& blocks);
/// `result` is the member's own block of all inputs.
void reduce_scatter_mapped(Schedule& schedule, const Members& me, const Blocks& blocks, Slice result);
/// The member's input is its block. It lies in the output already, too, or there alone.
void all_gather_mapped(Schedule& schedule, const Members& me, const Blocks& blocks);
/// Nobody changes what it lent before all have read, and nobody counts what it read before all have said so.
void part(Schedule& schedule, const Members& me);
/// From number 0.
void broadcast_mapped(Schedule& schedule, const Members& me, Slice data);

/// Each member's `bytes` elements of input come to all members' output, in the order of their numbers.
void tell_all(Schedule& schedule, const Members& me, std::uint64_t bytes);
/// Returns once all members have come here. Where meetings are steps, the members are all ranks of this host.
void meet(Schedule& schedule, const Members& me);
/// As long as it takes so many messages one after another.
double messages_to_meet(std::uint32_t size);

}  // namespace hawser::schedule
