#include "schedule/doubling.h"

#include <bit>

#include "base/planted.h"

namespace hawser::schedule {
namespace {

/// Exchanges `data` with the peer, and combines the two in the order of their ranks.
void exchange(Schedule& schedule, std::uint32_t peer, bool peer_is_lower, Slice data, Slice got) {
  schedule.send(peer, data);
  schedule.receive(peer, got);
  if (peer_is_lower) {
    schedule.combine_before(got, data);
  } else {
    schedule.combine(got, data);
  }
  schedule.end_round();
}

/// A scan of the ranks from `first` on.
void scan_from(Schedule& schedule, const Members& me, std::uint64_t first, Slice data) {
  if (me.rank < first) return;
  const Slice got = {Buffer::kScratch, schedule.take_scratch(data.count), data.count};
  for (std::uint64_t distance = 1; first + distance < me.size; distance *= 2) {
    if (me.rank + distance < me.size) {
      schedule.send(me.world_rank(static_cast<std::uint32_t>(me.rank + distance)), data);
    }
    if (me.rank >= first + distance) {
      schedule.receive(me.world_rank(static_cast<std::uint32_t>(me.rank - distance)), got);
      if (distance == 1 || !base::planted(base::Planted::kScanShort)) schedule.combine_before(got, data);
    }
    schedule.end_round();
  }
}

}  // namespace

void all_reduce_doubling(Schedule& schedule, const Members& me, Slice data) {
  if (me.size == 1) return;
  const Slice got = {Buffer::kScratch, schedule.take_scratch(data.count), data.count};
  const std::uint32_t power = std::bit_floor(me.size), extra = me.size - power;
  // Of the first 2 * extra ranks each even one gives what it has to the next, and gets the result in the end.
  const bool is_paired = me.rank < 2 * extra;
  if (is_paired && me.rank % 2 == 0) {
    schedule.send(me.world_rank(me.rank + 1), data);
    schedule.end_round();
    schedule.receive(me.world_rank(me.rank + 1), data);
    schedule.end_round();
    return;
  }
  if (is_paired) {
    schedule.receive(me.world_rank(me.rank - 1), got);
    schedule.combine_before(got, data);
    schedule.end_round();
  }
  const std::uint32_t place = is_paired ? me.rank / 2 : me.rank - extra;
  const auto at_place = [&](std::uint32_t other) {
    return me.world_rank(other < extra ? 2 * other + 1 : other + extra);
  };
  for (std::uint32_t bit = 1; bit < power; bit *= 2) {
    const std::uint32_t other = place ^ bit;
    exchange(schedule, at_place(other), other < place, data, got);
  }
  if (is_paired) {
    schedule.send(me.world_rank(me.rank - 1), data);
    schedule.end_round();
  }
}

void scan_doubling(Schedule& schedule, const Members& me, Slice data) { scan_from(schedule, me, 0, data); }

void exclusive_scan_doubling(Schedule& schedule, const Members& me, Slice data) {
  if (me.size == 1) return;
  const Slice got = {Buffer::kScratch, schedule.take_scratch(data.count), data.count};
  if (me.rank + 1 < me.size) schedule.send(me.world_rank(me.rank + 1), data);
  if (me.rank > 0) schedule.receive(me.world_rank(me.rank - 1), got);
  if (me.rank > 0) schedule.copy(got, data);
  schedule.end_round();
  scan_from(schedule, me, 1, data);  // Rank 0 keeps its own.
}

void barrier_dissemination(Schedule& schedule, const Members& me) {
  for (std::uint64_t distance = 1; distance < me.size; distance *= 2) {
    schedule.send_nothing(me.after(static_cast<std::uint32_t>(distance)));
    schedule.receive_nothing(me.before(static_cast<std::uint32_t>(distance)));
    schedule.end_round();
  }
}

}  // namespace hawser::schedule
