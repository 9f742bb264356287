#include "worldsim/ways.h"

#include <utility>

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

Ways::Ranks Ways::note_lost(std::uint32_t one, std::uint32_t other) {
  if (!is_sparse() || !lost_.insert(runtime::link_of(one, other)).second) return {};
  look();
  if (!joins(one, other, {})) return {};
  const Ranks without_one = largest_without(one), without_other = largest_without(other);
  const bool keeps_other =
      without_one.size() == without_other.size() ? other < one : without_one.size() > without_other.size();
  const Ranks& stays = keeps_other ? without_one : without_other;
  Ranks out;
  for (std::uint32_t rank = 0; rank < graphs_.size(); ++rank) {
    if (!gone_.contains(rank) && !stays.contains(rank)) out.insert(rank);
  }
  return out;
}

void Ways::look() {
  for (std::uint32_t rank = 0; rank < graphs_.size(); ++rank) {
    if (!gone_.contains(rank) && !sees_all(rank)) were_apart_ = true;
  }
}

std::vector<std::uint32_t> Ways::hops_without(std::uint32_t from, const Ranks& without) const {
  Ranks out = without;
  out.insert(gone_.begin(), gone_.end());
  return graphs_[from].graph.next_hops(from, out, lost_);
}

Ways::Ranks Ways::joined_with(std::uint32_t rank, const Ranks& without) const {
  const std::vector<std::uint32_t> hops = hops_without(rank, without);
  Ranks joined = {rank};
  for (std::uint32_t other = 0; other < hops.size(); ++other) {
    if (hops[other] != runtime::kNoRank) joined.insert(other);
  }
  return joined;
}

Ways::Ranks Ways::largest_without(std::uint32_t rank) const {
  Ranks largest;
  for (std::uint32_t from = 0; from < graphs_.size(); ++from) {
    if (from == rank || gone_.contains(from)) continue;
    Ranks joined = joined_with(from, {rank});
    if (joined.size() > largest.size()) largest = std::move(joined);
  }
  return largest;
}

/// Members of a graph have neighbours, unless there is one alone.
bool Ways::sees_all(std::uint32_t rank) const {
  const runtime::Graph& graph = graphs_[rank].graph;
  const std::vector<std::uint32_t> hops = hops_without(rank, {});
  for (std::uint32_t other = 0; other < graph.size(); ++other) {
    const bool counts = other != rank && !gone_.contains(other) && !graph.neighbours(other).empty();
    if (counts && hops[other] == runtime::kNoRank) return false;
  }
  return true;
}

bool Ways::joins(std::uint32_t from, std::uint32_t to, const Ranks& without) const {
  return !is_sparse() || from == to || hops_without(from, without)[to] != runtime::kNoRank;
}

bool Ways::are_neighbours(std::uint32_t one, std::uint32_t other) const {
  return !is_sparse() || graphs_[one].graph.has_edge(one, other);
}

bool Ways::leads_by(std::uint32_t from, std::uint32_t to, std::uint32_t relay) const {
  if (!is_sparse() || from == to) return false;
  for (std::uint32_t at = graphs_[from].graph.next_hops(from, gone_, lost_)[to]; at != to;) {
    if (at == relay) return true;
    if (at == runtime::kNoRank) return false;
    at = graphs_[from].graph.next_hops(at, gone_, lost_)[to];
  }
  return false;
}

}  // namespace hawser::worldsim
