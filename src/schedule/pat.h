#pragma once

// PAT: all-gather and reduce-scatter by parallel aggregated trees. Each block goes by a binomial tree of its own, and
// what one rank sends to another in a round, of all trees, goes together. The trees take the greatest distance first
// (an all-gather), or last (a reduce-scatter): so a rank sends few blocks far, and many near. A circulant graph, which
// takes as many rounds and bytes, does the opposite (circulant.h).
//
// Where hosts have as many ranks each, trees go over a grid of hosts and ranks: first between hosts, among ranks with
// the same number on their hosts, and then within each host. So each block comes to each host once.
//
// Blocks that go together lie apart. So small ones are copied into a staging buffer of a fixed size. Larger ones go
// from where they lie. A round with more than that is done in several.
//
// Source: S. Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", arXiv 2506.20252.

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/cost_model.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// A block of so many bytes goes alone.
inline constexpr std::uint64_t kPatAlone = 8192;
/// Of small blocks that go together, bytes.
inline constexpr std::uint64_t kPatStaged = 65'536;
/// Blocks that go alone in one round, at most, and of so many bytes together unless it is one.
inline constexpr std::uint32_t kPatBlocks = 16;
inline constexpr std::uint64_t kPatBytes = std::uint64_t{1} << 20;

/// The ranks of a world, on hosts with as many ranks each.
class Grid {
 public:
  /// `hosts`: by rank, the number of its host. Hosts that differ, or none: one host with all ranks.
  Grid(std::span<const std::uint32_t> hosts, std::uint32_t size);
  /// Several hosts, of several ranks each, which are as many on each.
  static bool has_hosts(std::span<const std::uint32_t> hosts);

  std::uint32_t hosts() const { return hosts_; }
  std::uint32_t ranks_of_host() const { return static_cast<std::uint32_t>(ranks_.size()) / hosts_; }
  std::uint32_t rank(std::uint32_t host, std::uint32_t place) const { return ranks_[host * ranks_of_host() + place]; }
  /// Where `rank` finds it.
  std::uint32_t host_of(std::uint32_t rank) const { return places_[rank] / ranks_of_host(); }
  std::uint32_t place_of(std::uint32_t rank) const { return places_[rank] % ranks_of_host(); }

 private:
  std::uint32_t hosts_ = 1;
  std::vector<std::uint32_t> ranks_;   ///< Host by host.
  std::vector<std::uint32_t> places_;  ///< By rank: where it is in `ranks_`.
};

/// Between hosts alone a block comes from, or to, the rank of each host with this rank's number there.
enum class PatLevels : std::uint8_t { kBoth, kBetweenHosts };

/// Before, block `rank` of `buffer` is there; afterwards all are. Between hosts: those of ranks with the same number.
void all_gather_pat(Schedule& schedule, const Grid& grid, std::uint32_t rank, const Blocks& blocks, Buffer buffer,
                    std::uint64_t element_bytes, PatLevels levels = PatLevels::kBoth);
/// Afterwards block `rank` of `buffer` is combined of all ranks', and the others are used up. For operations that
/// commute. Between hosts: the blocks of ranks with the same number were combined within the host before.
void reduce_scatter_pat(Schedule& schedule, const Grid& grid, std::uint32_t rank, const Blocks& blocks, Buffer buffer,
                        std::uint64_t element_bytes, PatLevels levels = PatLevels::kBoth);
/// What the model says that PAT takes for blocks of `block_bytes` bytes each, in nanoseconds. All ranks compute the
/// same. It is a sum of the model's values, so that they can be fitted to measured times.
double cost_of_pat(const Grid& grid, double block_bytes, bool combines, const CostModel& model,
                   PatLevels levels = PatLevels::kBoth);

}  // namespace hawser::schedule
