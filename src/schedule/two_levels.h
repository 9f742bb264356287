#pragma once

// Collectives on two levels: within each host, where messages are cheap, and between hosts, where each byte should go
// once. For operations that commute.
//
// all_reduce: each host combines, so that its first ranks have a slice each, as many as the smallest host has ranks;
// ranks with the same slice combine between hosts; each host gathers. So several ranks of a host send between hosts at
// once, and each sends its slice only. Where the smallest host has one rank, or much fewer than the largest, leaders do
// the work between hosts. What goes between hosts does not depend on how ranks of a host do their part, so each host
// may do it in its own way.
//
// Source: J. L. Träff, S. Hunold, "Decomposing MPI Collectives for Exploiting Multi-lane Communication", arXiv
// 1910.13373 (the slices are its full-lane all-reduce).

#include <cstdint>
#include <span>

#include "schedule/cost_model.h"
#include "schedule/hosts.h"
#include "schedule/pat.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// On each level the algorithm is the one that is cheapest there, by the model.
void all_reduce_two_levels(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                           const CostModel& model);
/// What the hosts' root has in `output` comes to all.
void broadcast_two_levels(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                          const CostModel& model);
/// The combination of all ranks' `data` comes to the root; the others' is used up.
void reduce_two_levels(Schedule& schedule, const Hosts& hosts, Slice data, std::uint64_t element_bytes,
                       const CostModel& model);
void barrier_two_levels(Schedule& schedule, const Hosts& hosts);
/// As all_reduce_two_levels, but only leaders send between hosts.
void all_reduce_by_leaders(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                           const CostModel& model);

// On one of the levels.
/// What number 0 has in `data` comes to all members.
void broadcast_among(Schedule& schedule, const Members& me, Slice data, std::uint64_t element_bytes,
                     const CostModel& model);
/// The combination of all members' `data` comes to number 0; the others' is used up.
void reduce_among(Schedule& schedule, const Members& me, Slice data, std::uint64_t element_bytes,
                  const CostModel& model);

// What leaders do between hosts. The others do nothing.
void all_reduce_of_leaders(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                           const CostModel& model);
void broadcast_of_leaders(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                          const CostModel& model);
void reduce_of_leaders(Schedule& schedule, const Hosts& hosts, Slice data, std::uint64_t element_bytes,
                       const CostModel& model);
void barrier_of_leaders(Schedule& schedule, const Hosts& hosts);

// Where the ranks of a host read each other's buffers: see mapped.h. Between hosts they send what they send above, so
// hosts whose ranks cannot read go on two levels beside those that can.
/// Only where `is_sliced`.
void all_reduce_mapped_in_hosts(Schedule& schedule, const Hosts& hosts, std::uint64_t count,
                                std::uint64_t element_bytes, const CostModel& model);
void broadcast_mapped_in_hosts(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                               const CostModel& model);
/// Of hosts with as many ranks each. Between hosts as PAT. The own block is in `output`, and comes to all.
void all_gather_mapped_in_hosts(Schedule& schedule, const Hosts& hosts, const Grid& grid, const Blocks& blocks,
                                std::uint64_t element_bytes);
/// The own block of all inputs comes to scratch, where it is in the input. Scratch of all blocks was taken first.
void reduce_scatter_mapped_in_hosts(Schedule& schedule, const Hosts& hosts, const Grid& grid, const Blocks& blocks,
                                    std::uint64_t element_bytes);

/// Slices of an all_reduce are worth it: each host has ranks enough to carry them, and each slice has elements.
bool is_sliced(const Hosts& hosts, std::uint64_t count);
/// By place among the ranks of a host: its slice. Those behind the last lane have none.
Blocks slices_of(const Hosts& hosts, std::uint64_t count);
/// What those with the same slice do between hosts. The others do nothing.
void all_reduce_of_slices(Schedule& schedule, const Hosts& hosts, std::uint64_t count, std::uint64_t element_bytes,
                          const CostModel& model);

}  // namespace hawser::schedule
