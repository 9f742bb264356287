#pragma once

// Routes: what one rank of a sparse world knows of the ways to the others. It knows more and more: ranks are gone, and
// links are lost, the world is shrunk. Nothing of that is ever taken back.
//
// No circle: before a rank sends a frame by what it knows, it has told the neighbour that it sends the frame to (see
// Relay). So along a frame's way each rank knows what the ranks before it knew. While two ranks know the same, each hop
// leads one nearer (see Graph); so there are less than `size` hops for each thing that is learnt on the way, and
// hops_max says how many there can be by what is known here. A frame with more hops comes from a defective rank.
//
// Thread rule: one thread at a time.

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "runtime/graph.h"

namespace hawser::runtime {

class Routes {
 public:
  /// `topology` was checked for `size`.
  Routes(Topology topology, std::uint32_t rank, std::uint32_t size);

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return graph_.size(); }
  const Topology& topology() const { return topology_; }
  const Graph& graph() const { return graph_; }
  /// Neighbours of this rank, gone or not.
  const std::vector<std::uint32_t>& neighbours() const { return graph_.neighbours(rank_); }
  bool is_neighbour(std::uint32_t rank) const { return graph_.has_edge(rank_, rank); }
  /// The neighbour that a message for `target` goes to; kNoRank: no way leads there.
  std::uint32_t hop_to(std::uint32_t target) const { return hops_[target]; }
  std::uint64_t hops_max() const;
  /// How often the ways changed.
  std::uint64_t changes() const { return gone_.size() + lost_.size() + generation_; }

  bool is_gone(std::uint32_t rank) const { return gone_.contains(rank); }
  const std::set<std::uint32_t>& gone() const { return gone_; }
  /// No way leads by it any more. False: that was known.
  bool exclude(std::uint32_t rank);
  /// Links whose ends may both live and hear each other no more.
  const Links& lost_links() const { return lost_; }
  /// `from` says that it hears `to` no more: no way leads by their link any more. False: it had said so, or there is no
  /// such link, so what ranks say takes no more memory than the graph.
  bool lose_link(std::uint32_t from, std::uint32_t to);
  bool has_said_lost(std::uint32_t from, std::uint32_t to) const { return said_.contains({from, to}); }
  /// A way leads there, or it is this rank.
  bool reaches(std::uint32_t rank) const { return rank == rank_ || hops_[rank] != kNoRank; }
  /// They were neighbours when the world was opened, and so talk over their own link only.
  bool have_session(std::uint32_t one, std::uint32_t other) const { return first_.has_edge(one, other); }
  std::uint64_t generation() const { return generation_; }
  /// The graph is that of these members from now on. False: this generation, or a later one, was known.
  bool adopt(std::uint64_t generation, std::span<const std::uint32_t> members);

 private:
  void find_ways();

  const Topology topology_;
  const std::uint32_t rank_;
  const Graph first_;  ///< When the world was opened.
  Graph graph_;
  std::set<std::uint32_t> gone_;
  Links lost_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> said_;  ///< The first one says that it lost the other.
  std::uint64_t generation_ = 0;
  std::vector<std::uint32_t> hops_;
};

}  // namespace hawser::runtime
