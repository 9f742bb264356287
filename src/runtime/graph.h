#pragma once

// Graph: who is whose neighbour in a world of some topology, and by which neighbour a message goes to a rank.
//
// Every rank computes it by itself, so all come to the same: it depends on the topology, the world's size, and the
// members alone. Members are all ranks at first, and those that are left after a shrink. Ranks keep their numbers.
//
// Thread rule: values and pure functions.

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <hawser/topology.h>

namespace hawser::runtime {

inline constexpr std::uint32_t kNoRank = UINT32_MAX;

/// Two neighbours, the lower one first.
using Link = std::pair<std::uint32_t, std::uint32_t>;
using Links = std::set<Link>;
inline Link link_of(std::uint32_t one, std::uint32_t other) { return std::minmax(one, other); }

/// Good where a world of that size can have this topology; else kInvalid says what is wrong with it.
Status check_topology(const Topology& topology, std::uint32_t size);

class Graph {
 public:
  Graph() = default;
  /// `topology` has been checked for `size`. `members` are in rising order. A ring or a cube is one of the members, by
  /// their order. Of edges those between members are left; parts that have no edge between them are joined by their
  /// lowest ranks.
  Graph(const Topology& topology, std::uint32_t size, std::span<const std::uint32_t> members);
  /// All ranks are members.
  Graph(const Topology& topology, std::uint32_t size);

  std::uint32_t size() const { return static_cast<std::uint32_t>(neighbours_.size()); }
  /// In rising order. Empty for a rank that is no member.
  const std::vector<std::uint32_t>& neighbours(std::uint32_t rank) const { return neighbours_[rank]; }
  bool has_edge(std::uint32_t a, std::uint32_t b) const;

  /// By rank: the neighbour of `from` that a message for it goes to, on a shortest way that avoids `gone` and `lost`;
  /// kNoRank: there is no way, or it is `from` itself. Of several ways it is that by the lowest neighbour. Each hop by
  /// this rule leads nearer by one, so messages go in no circle while all ranks agree on `gone` and `lost`.
  std::vector<std::uint32_t> next_hops(std::uint32_t from, const std::set<std::uint32_t>& gone,
                                       const Links& lost = {}) const;

 private:
  void add_ring(std::span<const std::uint32_t> members, std::uint32_t degree);
  void add_cube(std::span<const std::uint32_t> members);
  void add_edges(std::span<const Topology::Edge> edges, std::span<const std::uint32_t> members);
  void join_parts(std::span<const std::uint32_t> members);
  void add_edge(std::uint32_t a, std::uint32_t b);

  std::vector<std::vector<std::uint32_t>> neighbours_;
};

}  // namespace hawser::runtime
