#pragma once

// Hosts: which ranks of a world share a host, as one rank sees it.
//
// Thread rule: a value.

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/members.h"

namespace hawser::schedule {

class Hosts {
 public:
  /// `hosts`: by rank, the number of its host. On each host one rank is the leader: its first one, or `root` where that
  /// is.
  Hosts(std::span<const std::uint32_t> hosts, std::uint32_t rank, std::uint32_t root);

  /// Not all ranks are on one host.
  static bool are_several(std::span<const std::uint32_t> hosts);
  /// There are several, and some rank has a host in common with another: two levels may pay.
  static bool has_levels(std::span<const std::uint32_t> hosts);
  /// The ranks of each host follow one another.
  static bool are_runs(std::span<const std::uint32_t> hosts);
  /// The ranks of that rank's host, in their order. Without `hosts` all of `size` are on one.
  static std::vector<std::uint32_t> sharing(std::span<const std::uint32_t> hosts, std::uint32_t rank,
                                            std::uint32_t size);

  std::uint32_t hosts() const { return static_cast<std::uint32_t>(leaders_.size()); }
  /// Of the host that has most.
  std::uint32_t ranks_max() const { return ranks_max_; }
  /// Of the host that has fewest. So many ranks of each host have a twin on every other host.
  std::uint32_t lanes() const { return lanes_; }
  bool has_lane() const { return mates_place_ < lanes_; }
  bool is_leader() const { return mates_place_ == 0; }
  /// The number of this rank's host: that of its leader among the leaders.
  std::uint32_t host() const { return host_; }
  /// The ranks of the host with that number, in their order.
  std::span<const std::uint32_t> ranks_of(std::uint32_t host) const { return ranks_[host]; }

  // Views of this object.
  /// Those of this rank's host; number 0 is the leader.
  Members mates() const { return Members::among(mates_, mates_place_); }
  /// One of each host; number 0 is the root. Only a leader may ask.
  Members leaders() const { return Members::among(leaders_, leaders_place_); }
  /// Of each host the one that has this rank's number among its mates. Only a rank that `has_lane` may ask.
  Members column() const { return Members::among(column_, column_place_); }

 private:
  std::vector<std::uint32_t> mates_, leaders_, column_;
  std::size_t mates_place_ = 0, leaders_place_ = 0, column_place_ = 0;
  std::vector<std::vector<std::uint32_t>> ranks_;  ///< By number of the host.
  std::uint32_t host_ = 0;
  std::uint32_t ranks_max_ = 0, lanes_ = 0;
};

}  // namespace hawser::schedule
