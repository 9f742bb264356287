#include "schedule/tree.h"

#include <algorithm>
#include <bit>

namespace hawser::schedule {
namespace {

/// How many members the tree below this one has, itself among them, if all were there: its number's lowest bit.
std::uint64_t width_of(const Members& me) {
  return me.rank == 0 ? std::bit_ceil(std::uint64_t{me.size}) : std::uint64_t{1} << std::countr_zero(me.rank);
}

}  // namespace

void broadcast_tree(Schedule& schedule, const Members& me, Slice data) {
  const std::uint64_t width = width_of(me);
  if (me.rank != 0) {
    schedule.receive(me.world_rank(me.rank - static_cast<std::uint32_t>(width)), data);
    schedule.end_round();
  }
  for (std::uint64_t half = width / 2; half > 0; half /= 2) {
    const std::uint64_t child = me.rank + half;
    if (child >= me.size) continue;
    schedule.send(me.world_rank(static_cast<std::uint32_t>(child)), data);
    schedule.end_round();
  }
}

void reduce_tree(Schedule& schedule, const Members& me, Slice data) {
  const std::uint64_t width = width_of(me);
  const std::uint64_t scratch = me.rank + 1 < me.size && width > 1 ? schedule.take_scratch(data.count) : 0;
  for (std::uint64_t half = 1; half < width; half *= 2) {
    const std::uint64_t child = me.rank + half;
    if (child >= me.size) break;
    const Slice got = {Buffer::kScratch, scratch, data.count};
    schedule.receive(me.world_rank(static_cast<std::uint32_t>(child)), got);
    schedule.combine(got, data);
    schedule.end_round();
  }
  if (me.rank != 0) {
    schedule.send(me.world_rank(me.rank - static_cast<std::uint32_t>(width)), data);
    schedule.end_round();
  }
}

void scatter_tree(Schedule& schedule, const Members& me, const Blocks& blocks, Buffer buffer) {
  const auto below = [&](std::uint64_t member, std::uint64_t width) {
    const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(member + width, me.size));
    return blocks.slice(buffer, static_cast<std::uint32_t>(member), end);
  };
  const std::uint64_t width = width_of(me);
  if (me.rank != 0) {
    schedule.receive(me.world_rank(me.rank - static_cast<std::uint32_t>(width)), below(me.rank, width));
    schedule.end_round();
  }
  for (std::uint64_t half = width / 2; half > 0; half /= 2) {
    const std::uint64_t child = me.rank + half;
    if (child >= me.size) continue;
    schedule.send(me.world_rank(static_cast<std::uint32_t>(child)), below(child, half));
    schedule.end_round();
  }
}

}  // namespace hawser::schedule
