#include "schedule/direct.h"

#include <algorithm>

namespace hawser::schedule {
namespace {

/// Calls `visit(distance)` for all others, a round for every few.
template <typename Visit>
void in_rounds(Schedule& schedule, const Members& me, Visit visit) {
  for (std::uint32_t distance = 1; distance < me.size; ++distance) {
    visit(distance);
    if (distance % kPeersAtOnce == 0) schedule.end_round();
  }
  schedule.end_round();
}

}  // namespace

void exchange_blocks(Schedule& schedule, const Members& me, const Blocks& out, Buffer from, const Blocks& in,
                     Buffer into) {
  schedule.copy(out.slice(from, me.rank), in.slice(into, me.rank));
  in_rounds(schedule, me, [&](std::uint32_t distance) {
    const std::uint32_t to = me.number_after(distance), source = me.number_before(distance);
    schedule.send(me.world_rank(to), out.slice(from, to));
    schedule.receive(me.world_rank(source), in.slice(into, source));
  });
}

void reduce_scatter_fixed(Schedule& schedule, const Members& me, const Blocks& blocks, Buffer from, Slice result) {
  const std::uint64_t count = result.count;
  const std::uint64_t scratch = schedule.take_scratch(count * me.size);
  const auto place = [&](std::uint32_t rank) { return Slice{Buffer::kScratch, scratch + count * rank, count}; };
  schedule.copy(blocks.slice(from, me.rank), place(me.rank));
  in_rounds(schedule, me, [&](std::uint32_t distance) {
    const std::uint32_t to = me.number_after(distance), source = me.number_before(distance);
    schedule.send(me.world_rank(to), blocks.slice(from, to));
    schedule.receive(me.world_rank(source), place(source));
  });
  for (std::uint64_t half = 1; half < me.size; half *= 2) {
    for (std::uint64_t rank = 0; rank + half < me.size; rank += 2 * half) {
      schedule.combine(place(static_cast<std::uint32_t>(rank + half)), place(static_cast<std::uint32_t>(rank)));
    }
  }
  schedule.copy(place(0), result);
  schedule.end_round();
}

void gather_direct(Schedule& schedule, const Members& me, std::uint32_t root, const Blocks& blocks, Slice own,
                   Buffer buffer) {
  if (me.rank != root) {
    schedule.send(me.world_rank(root), own);
    return schedule.end_round();
  }
  schedule.copy(own, blocks.slice(buffer, root));
  in_rounds(schedule, me, [&](std::uint32_t distance) {
    const std::uint32_t source = me.number_after(distance);
    schedule.receive(me.world_rank(source), blocks.slice(buffer, source));
  });
}

void scatter_direct(Schedule& schedule, const Members& me, std::uint32_t root, const Blocks& blocks, Buffer buffer,
                    Slice own) {
  if (me.rank != root) {
    schedule.receive(me.world_rank(root), own);
    return schedule.end_round();
  }
  schedule.copy(blocks.slice(buffer, root), own);
  in_rounds(schedule, me, [&](std::uint32_t distance) {
    const std::uint32_t to = me.number_after(distance);
    schedule.send(me.world_rank(to), blocks.slice(buffer, to));
  });
}

}  // namespace hawser::schedule
