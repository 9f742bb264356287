#include "worldsim/ways.h"

namespace hawser::worldsim {

void Ways::open(const Topology& topology, std::uint32_t size) {
  if (topology.kind == Topology::Kind::kFull) return;
  graphs_.assign(size, {.generation = 0, .graph = runtime::Graph(topology, size)});
}

void Ways::note_graph(std::uint32_t rank, std::uint64_t generation, const runtime::Graph& graph) {
  graphs_[rank] = {.generation = generation, .graph = graph};
  look();
}

void Ways::note_gone(std::uint32_t rank) {
  if (is_sparse() && gone_.insert(rank).second) look();
}

void Ways::note_doubtful(std::uint32_t rank) {
  if (is_sparse() && doubtful_.insert(rank).second) look();
}

/// With each choice of the doubtful ones. There are two at most.
void Ways::look() {
  Ranks gone = gone_;
  look_without(gone);
  for (const std::uint32_t one : doubtful_) {
    gone.insert(one);
    look_without(gone);
    Ranks alone = gone_;
    alone.insert(one);
    look_without(alone);
  }
}

void Ways::look_without(const Ranks& gone) {
  for (std::uint32_t rank = 0; rank < graphs_.size(); ++rank) {
    if (!gone.contains(rank) && !sees_all(rank, gone)) were_apart_ = true;
  }
}

/// Members of a graph have neighbours, unless there is one alone.
bool Ways::sees_all(std::uint32_t rank, const Ranks& gone) const {
  const runtime::Graph& graph = graphs_[rank].graph;
  const std::vector<std::uint32_t> hops = graph.next_hops(rank, gone);
  for (std::uint32_t other = 0; other < graph.size(); ++other) {
    const bool counts = other != rank && !gone.contains(other) && !graph.neighbours(other).empty();
    if (counts && hops[other] == runtime::kNoRank) return false;
  }
  return true;
}

bool Ways::joins(std::uint32_t from, std::uint32_t to, const Ranks& without) const {
  if (!is_sparse() || from == to) return true;
  Ranks out = without;
  out.insert(gone_.begin(), gone_.end());
  out.insert(doubtful_.begin(), doubtful_.end());
  return graphs_[from].graph.next_hops(from, out)[to] != runtime::kNoRank;
}

bool Ways::are_neighbours(std::uint32_t one, std::uint32_t other) const {
  return !is_sparse() || graphs_[one].graph.has_edge(one, other);
}

bool Ways::leads_by(std::uint32_t from, std::uint32_t to, std::uint32_t relay) const {
  if (!is_sparse() || from == to) return false;
  for (std::uint32_t at = graphs_[from].graph.next_hops(from, gone_)[to]; at != to;) {
    if (at == relay) return true;
    if (at == runtime::kNoRank) return false;
    at = graphs_[from].graph.next_hops(at, gone_)[to];
  }
  return false;
}

}  // namespace hawser::worldsim
