#pragma once

// Ways: which ranks of a sparse world reach which others, as a judge sees it that knows at once who is gone. Ranks
// learn of smaller graphs at different times, so each has the graph that it goes by itself. In a full world all reach
// all.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "runtime/graph.h"

namespace hawser::worldsim {

class Ways {
 public:
  using Ranks = std::set<std::uint32_t>;

  /// `topology` was checked for `size`.
  void open(const Topology& topology, std::uint32_t size);
  bool is_sparse() const { return !graphs_.empty(); }

  /// The rank goes by the graph of this generation from now on.
  void note_graph(std::uint32_t rank, std::uint64_t generation, const runtime::Graph& graph);
  std::uint64_t generation(std::uint32_t rank) const { return graphs_[rank].generation; }
  /// No way leads by it any more.
  void note_gone(std::uint32_t rank);
  /// These two neighbours, all of whose ranks go by the first graph, lose each other for good. Returns whom the ranks
  /// leave out for it: the one of the two without which more of the rest stay joined, then the higher; and those that
  /// are not joined then. Empty: no way leads round, so each side goes on by itself.
  Ranks note_lost(std::uint32_t one, std::uint32_t other);

  /// At some time no way led from a rank that lives to another that lives: each may have taken the other for failed.
  bool were_apart() const { return were_apart_; }
  /// A way leads from one to the other that avoids these, and all that are gone.
  bool joins(std::uint32_t from, std::uint32_t to, const Ranks& without) const;
  bool are_neighbours(std::uint32_t one, std::uint32_t other) const;
  /// What goes from one to the other is passed on by this rank.
  bool leads_by(std::uint32_t from, std::uint32_t to, std::uint32_t relay) const;

 private:
  struct View {
    std::uint64_t generation = 0;
    runtime::Graph graph;
  };
  void look();
  bool sees_all(std::uint32_t rank) const;
  std::vector<std::uint32_t> hops_without(std::uint32_t from, const Ranks& without) const;
  Ranks joined_with(std::uint32_t rank, const Ranks& without) const;
  Ranks largest_without(std::uint32_t rank) const;

  std::vector<View> graphs_;  ///< By rank. Empty: the world is full.
  Ranks gone_;
  runtime::Links lost_;
  bool were_apart_ = false;
};

}  // namespace hawser::worldsim
