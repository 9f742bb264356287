#include "schedule/mapped.h"

#include <bit>

#include "schedule/circulant.h"
#include "schedule/direct.h"
#include "schedule/doubling.h"

namespace hawser::schedule {
namespace {

bool meets_at_once(std::uint32_t size) { return size <= kPeersAtOnce + 1; }

}  // namespace

void part(Schedule& schedule, const Members& me) {
  meet(schedule, me);
  meet(schedule, me);
}

double messages_to_meet(std::uint32_t size) {
  constexpr double kWork = 0.4;  // Of one end with one message, in the time from its send to the end of its receive.
  return meets_at_once(size) ? 1 + kWork * (size - 1) : (1 + kWork) * std::bit_width(size - 1);
}

void meet(Schedule& schedule, const Members& me) {
  if (schedule.meetings() == Meetings::kBySteps) return schedule.meet();
  if (!meets_at_once(me.size)) return barrier_dissemination(schedule, me);
  for (std::uint32_t distance = 1; distance < me.size; ++distance) {
    schedule.send_nothing(me.after(distance));
    schedule.receive_nothing(me.before(distance));
  }
  schedule.end_round();
}

void tell_all(Schedule& schedule, const Members& me, std::uint64_t bytes) {
  const Blocks blocks = Blocks::equal(bytes, me.size);
  const Slice own = {Buffer::kInput, 0, bytes};
  schedule.copy(own, blocks.slice(Buffer::kOutput, me.rank));
  if (!meets_at_once(me.size)) {
    schedule.end_round();
    return all_gather_blocks(schedule, me, blocks, Buffer::kOutput);
  }
  for (std::uint32_t distance = 1; distance < me.size; ++distance) {
    schedule.send(me.after(distance), own);
    schedule.receive(me.before(distance), blocks.slice(Buffer::kOutput, me.number_before(distance)));
  }
  schedule.end_round();
}

void combine_mapped(Schedule& schedule, const Members& me, Slice block, Slice result) {
  Slice first = block;
  first.buffer = Buffer::kInput;
  Slice sum = first;
  for (std::uint32_t distance = 1; distance < me.size; ++distance) {
    schedule.combine_read(me.after(distance), first, sum, result);
    sum = result;
  }
  schedule.end_round();
}

void gather_mapped(Schedule& schedule, const Members& me, const Blocks& blocks) {
  meet(schedule, me);
  for (std::uint32_t distance = 1; distance < me.size; ++distance) {
    const Slice block = blocks.slice(Buffer::kOutput, me.number_after(distance));
    schedule.read(me.after(distance), block, block);
  }
  schedule.end_round();
  part(schedule, me);
}

void all_reduce_mapped(Schedule& schedule, const Members& me, const Blocks& blocks) {
  const Slice own = blocks.slice(Buffer::kOutput, me.rank);
  combine_mapped(schedule, me, own, own);
  gather_mapped(schedule, me, blocks);
}

void reduce_scatter_mapped(Schedule& schedule, const Members& me, const Blocks& blocks, Slice result) {
  combine_mapped(schedule, me, blocks.slice(Buffer::kInput, me.rank), result);
  part(schedule, me);
}

void all_gather_mapped(Schedule& schedule, const Members& me, const Blocks& blocks) {
  for (std::uint32_t distance = 1; distance < me.size; ++distance) {
    const std::uint32_t number = me.number_after(distance);
    schedule.read(me.after(distance), {Buffer::kInput, 0, blocks.count(number)}, blocks.slice(Buffer::kOutput, number));
  }
  schedule.end_round();
  part(schedule, me);
}

void broadcast_mapped(Schedule& schedule, const Members& me, Slice data) {
  if (me.rank != 0) schedule.read(me.world_rank(0), data, data);
  schedule.end_round();
  part(schedule, me);
}

}  // namespace hawser::schedule
