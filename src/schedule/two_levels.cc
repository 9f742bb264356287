#include "schedule/two_levels.h"

#include <algorithm>

#include "schedule/circulant.h"
#include "schedule/collective.h"
#include "schedule/direct.h"
#include "schedule/doubling.h"
#include "schedule/mapped.h"
#include "schedule/tree.h"

namespace hawser::schedule {
namespace {

/// Which algorithm these members use, if the operation were theirs alone.
Algorithm cheapest(Operation operation, const Members& me, std::uint64_t count, std::uint64_t element_bytes,
                   const CostModel& model) {
  const Call call{.operation = operation, .size = me.size, .count = count, .element_bytes = element_bytes};
  return choices(call, model).front().algorithm;
}

/// Between hosts.
void all_reduce_among(Schedule& schedule, const Members& me, Slice data, std::uint64_t element_bytes,
                      const CostModel& model) {
  if (cheapest(Operation::kAllReduce, me, data.count, element_bytes, model) == Algorithm::kDoubling) {
    return all_reduce_doubling(schedule, me, data);
  }
  const Blocks blocks = Blocks::even(data.count, me.size).shifted(data.at);
  reduce_scatter_blocks(schedule, me, blocks, data.buffer);
  all_gather_blocks(schedule, me, blocks, data.buffer);
}

/// Number 0 sends to the others a few at a time, or they to it.
void with_leader(Schedule& schedule, const Members& me, bool is_arrival) {
  if (me.rank != 0) {
    if (is_arrival) schedule.send_nothing(me.world_rank(0));
    if (!is_arrival) schedule.receive_nothing(me.world_rank(0));
    return schedule.end_round();
  }
  for (std::uint32_t number = 1; number < me.size; ++number) {
    if (is_arrival) schedule.receive_nothing(me.world_rank(number));
    if (!is_arrival) schedule.send_nothing(me.world_rank(number));
    if (number % kPeersAtOnce == 0 || number + 1 == me.size) schedule.end_round();
  }
}

}  // namespace

void broadcast_among(Schedule& schedule, const Members& me, Slice data, std::uint64_t element_bytes,
                     const CostModel& model) {
  if (cheapest(Operation::kBroadcast, me, data.count, element_bytes, model) == Algorithm::kTree) {
    return broadcast_tree(schedule, me, data);
  }
  const Blocks blocks = Blocks::even(data.count, me.size).shifted(data.at);
  scatter_tree(schedule, me, blocks, data.buffer);
  all_gather_blocks(schedule, me, blocks, data.buffer);
}

void reduce_among(Schedule& schedule, const Members& me, Slice data, std::uint64_t element_bytes,
                  const CostModel& model) {
  if (cheapest(Operation::kReduce, me, data.count, element_bytes, model) != Algorithm::kCirculant) {
    return reduce_tree(schedule, me, data);
  }
  const Blocks blocks = Blocks::even(data.count, me.size).shifted(data.at);
  reduce_scatter_blocks(schedule, me, blocks, data.buffer);
  gather_direct(schedule, me, 0, blocks, blocks.slice(data.buffer, me.rank), data.buffer);
}

bool is_sliced(const Hosts& hosts, std::uint64_t count) {
  // Of much larger hosts few ranks would combine what all could.
  return hosts.lanes() > 1 && 2 * hosts.lanes() >= hosts.ranks_max() && count >= hosts.lanes();
}

Blocks slices_of(const Hosts& hosts, std::uint64_t count) {
  const Blocks slices = Blocks::even(count, hosts.lanes());
  std::vector<std::uint64_t> counts(hosts.mates().size);
  for (std::uint32_t lane = 0; lane < hosts.lanes(); ++lane) counts[lane] = slices.count(lane);
  return Blocks(counts);
}

void all_reduce_of_slices(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                          const CostModel& model) {
  if (!hosts.has_lane()) return;
  const Slice own = slices_of(hosts, count).slice(Buffer::kOutput, hosts.mates().rank);
  all_reduce_among(schedule, hosts.column(), own, element_bytes, model.between_hosts());
}

void all_reduce_two_levels(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                           const CostModel& model) {
  const Slice data = {Buffer::kOutput, 0, count};
  const Members mates = hosts.mates();
  if (is_sliced(hosts, count)) {
    const Blocks slices = slices_of(hosts, count);
    reduce_scatter_blocks(schedule, mates, slices, data.buffer);
    all_reduce_of_slices(schedule, hosts, count, element_bytes, model);
    return all_gather_blocks(schedule, mates, slices, data.buffer);
  }
  all_reduce_by_leaders(schedule, hosts, count, element_bytes, model);
}

void all_reduce_by_leaders(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                           const CostModel& model) {
  const Slice data = {Buffer::kOutput, 0, count};
  reduce_among(schedule, hosts.mates(), data, element_bytes, model);
  all_reduce_of_leaders(schedule, hosts, count, element_bytes, model);
  broadcast_among(schedule, hosts.mates(), data, element_bytes, model);
}

void all_reduce_of_leaders(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                           const CostModel& model) {
  if (!hosts.is_leader()) return;
  all_reduce_among(schedule, hosts.leaders(), {Buffer::kOutput, 0, count}, element_bytes, model.between_hosts());
}

void broadcast_two_levels(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                          const CostModel& model) {
  broadcast_of_leaders(schedule, hosts, count, element_bytes, model);
  broadcast_among(schedule, hosts.mates(), {Buffer::kOutput, 0, count}, element_bytes, model);
}

void broadcast_of_leaders(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                          const CostModel& model) {
  if (!hosts.is_leader()) return;
  broadcast_among(schedule, hosts.leaders(), {Buffer::kOutput, 0, count}, element_bytes, model.between_hosts());
}

void reduce_two_levels(Schedule& schedule, const Hosts& hosts, Slice data, std::uint64_t element_bytes,
                       const CostModel& model) {
  reduce_among(schedule, hosts.mates(), data, element_bytes, model);
  reduce_of_leaders(schedule, hosts, data, element_bytes, model);
}

void reduce_of_leaders(Schedule& schedule, const Hosts& hosts, Slice data, std::uint64_t element_bytes,
                       const CostModel& model) {
  if (!hosts.is_leader()) return;
  reduce_among(schedule, hosts.leaders(), data, element_bytes, model.between_hosts());
}

void barrier_two_levels(Schedule& schedule, const Hosts& hosts) {
  with_leader(schedule, hosts.mates(), true);
  barrier_of_leaders(schedule, hosts);
  with_leader(schedule, hosts.mates(), false);
}

void barrier_of_leaders(Schedule& schedule, const Hosts& hosts) {
  if (hosts.is_leader()) barrier_dissemination(schedule, hosts.leaders());
}

void all_reduce_mapped_in_hosts(Schedule& schedule, const Hosts& hosts, std::uint64_t count,
                                std::uint64_t element_bytes, const CostModel& model) {
  const Members mates = hosts.mates();
  const Blocks slices = slices_of(hosts, count);
  const Slice own = slices.slice(Buffer::kOutput, mates.rank);
  combine_mapped(schedule, mates, own, own);
  all_reduce_of_slices(schedule, hosts, count, element_bytes, model);
  gather_mapped(schedule, mates, slices);
}

void broadcast_mapped_in_hosts(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                               const CostModel& model) {
  broadcast_of_leaders(schedule, hosts, count, element_bytes, model);
  meet(schedule, hosts.mates());  // The leader has it.
  broadcast_mapped(schedule, hosts.mates(), {Buffer::kOutput, 0, count});
}

void all_gather_mapped_in_hosts(Schedule& schedule, const Hosts& hosts, const Grid& grid, const Blocks& blocks,
                                std::uint64_t element_bytes) {
  const Members mates = hosts.mates();
  const std::uint32_t rank = mates.world_rank(mates.rank);
  all_gather_pat(schedule, grid, rank, blocks, Buffer::kOutput, element_bytes, PatLevels::kBetweenHosts);
  meet(schedule, mates);  // All have what they bring from other hosts.
  for (std::uint32_t distance = 1; distance < mates.size; ++distance) {
    const std::uint32_t mate = mates.after(distance);
    for (std::uint32_t host = 0; host < grid.hosts(); ++host) {
      const Slice block = blocks.slice(Buffer::kOutput, grid.rank(host, grid.place_of(mate)));
      schedule.read(mate, block, block);
    }
  }
  schedule.end_round();
  part(schedule, mates);
}

void reduce_scatter_mapped_in_hosts(Schedule& schedule, const Hosts& hosts, const Grid& grid, const Blocks& blocks,
                                    std::uint64_t element_bytes) {
  const Members mates = hosts.mates();
  const std::uint32_t rank = mates.world_rank(mates.rank);
  for (std::uint32_t host = 0; host < grid.hosts(); ++host) {
    const std::uint32_t its = grid.rank(host, grid.place_of(rank));
    combine_mapped(schedule, mates, blocks.slice(Buffer::kInput, its), blocks.slice(Buffer::kScratch, its));
  }
  reduce_scatter_pat(schedule, grid, rank, blocks, Buffer::kScratch, element_bytes, PatLevels::kBetweenHosts);
  part(schedule, mates);
}

}  // namespace hawser::schedule
