#include "runtime/graph.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <string>

#include "base/try.h"

namespace hawser::runtime {
namespace {

Status invalid_topology(const std::string& text) { return {Code::kInvalid, "topology: " + text}; }

std::string shown_edge(const Topology::Edge& edge) {
  return std::to_string(edge.first) + "-" + std::to_string(edge.second);
}

std::vector<std::uint32_t> all_ranks(std::uint32_t size) {
  std::vector<std::uint32_t> all(size);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

Status check_regular(std::uint32_t degree, std::uint32_t size) {
  const std::string text = "regular:" + std::to_string(degree);
  if (degree == 0) return invalid_topology(text + ": a rank has two neighbours at least");
  if (degree % 2 != 0)
    return invalid_topology(text + ": the degree must be even, half of the neighbours are on either side");
  if (degree < size) return {};
  return invalid_topology(text + ": a rank of a world of " + std::to_string(size) + " has " + std::to_string(size - 1) +
                          " others to be neighbours with");
}

Status check_edges(const Topology& topology, std::uint32_t size) {
  for (const Topology::Edge& edge : topology.edges) {
    if (edge.first >= size || edge.second >= size) {
      return invalid_topology("the edge " + shown_edge(edge) + " leads out of the world, whose ranks are 0 to " +
                              std::to_string(size - 1));
    }
    if (edge.first == edge.second)
      return invalid_topology("the edge " + shown_edge(edge) + " leads from a rank to itself");
  }
  const std::vector<std::uint32_t> hops = Graph(topology, size).next_hops(0, {});
  for (std::uint32_t rank = 1; rank < size; ++rank) {
    if (hops[rank] == kNoRank) return invalid_topology("no edges lead from rank 0 to rank " + std::to_string(rank));
  }
  return {};
}

}  // namespace

Status check_topology(const Topology& topology, std::uint32_t size) {
  if (topology.kind == Topology::Kind::kRegular) return check_regular(topology.degree, size);
  if (topology.kind == Topology::Kind::kEdges) return check_edges(topology, size);
  return {};
}

Graph::Graph(const Topology& topology, std::uint32_t size) : neighbours_(size) {
  const std::vector<std::uint32_t> all = all_ranks(size);
  if (topology.kind != Topology::Kind::kEdges) {
    *this = Graph(topology, size, all);
  } else {  // What has no edge stays apart: check_topology finds it.
    add_edges(topology.edges, all);
  }
}

Graph::Graph(const Topology& topology, std::uint32_t size, std::span<const std::uint32_t> members) : neighbours_(size) {
  switch (topology.kind) {
    case Topology::Kind::kFull:
      add_ring(members, size);
      break;
    case Topology::Kind::kRegular:
      add_ring(members, topology.degree);
      break;
    case Topology::Kind::kHypercube:
      add_cube(members);
      break;
    case Topology::Kind::kEdges:
      add_edges(topology.edges, members);
      join_parts(members);
      break;
  }
}

void Graph::add_edge(std::uint32_t a, std::uint32_t b) {
  const auto add = [this](std::uint32_t from, std::uint32_t to) {
    std::vector<std::uint32_t>& list = neighbours_[from];
    const auto at = std::ranges::lower_bound(list, to);
    if (at == list.end() || *at != to) list.insert(at, to);
  };
  if (a == b) return;
  add(a, b);
  add(b, a);
}

void Graph::add_ring(std::span<const std::uint32_t> members, std::uint32_t degree) {
  const std::size_t count = members.size();
  const std::size_t reach = std::min<std::size_t>(degree / 2 + degree % 2, count / 2);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t step = 1; step <= reach; ++step) add_edge(members[i], members[(i + step) % count]);
  }
}

/// Clearing the highest bit of a number leads to a lower one, so every member has a way to the first.
void Graph::add_cube(std::span<const std::uint32_t> members) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t bit = 1; bit < members.size(); bit *= 2) {
      if ((i ^ bit) < members.size()) add_edge(members[i], members[i ^ bit]);
    }
  }
}

void Graph::add_edges(std::span<const Topology::Edge> edges, std::span<const std::uint32_t> members) {
  for (const auto& [a, b] : edges) {
    if (std::ranges::binary_search(members, a) && std::ranges::binary_search(members, b)) add_edge(a, b);
  }
}

void Graph::join_parts(std::span<const std::uint32_t> members) {
  if (members.empty()) return;
  std::vector<std::uint32_t> hops = next_hops(members.front(), {});
  for (const std::uint32_t member : members.subspan(1)) {
    if (hops[member] != kNoRank) continue;
    add_edge(members.front(), member);
    hops = next_hops(members.front(), {});
  }
}

bool Graph::has_edge(std::uint32_t a, std::uint32_t b) const { return std::ranges::binary_search(neighbours_[a], b); }

std::vector<std::uint32_t> Graph::next_hops(std::uint32_t from, const std::set<std::uint32_t>& gone,
                                            const Links& lost) const {
  std::vector<std::uint32_t> hops(size(), kNoRank);
  std::vector<bool> is_seen(size());
  for (const std::uint32_t rank : gone) is_seen[rank] = true;
  is_seen[from] = true;
  std::deque<std::uint32_t> reached;
  const auto reach = [&](std::uint32_t rank, std::uint32_t by) {
    if (is_seen[rank]) return;
    is_seen[rank] = true;
    hops[rank] = by;
    reached.push_back(rank);
  };
  const auto is_lost = [&](std::uint32_t a, std::uint32_t b) { return !lost.empty() && lost.contains(link_of(a, b)); };
  for (const std::uint32_t rank : neighbours_[from]) {
    if (!is_lost(from, rank)) reach(rank, rank);
  }
  while (!reached.empty()) {
    const std::uint32_t rank = reached.front();
    reached.pop_front();
    for (const std::uint32_t next : neighbours_[rank]) {
      if (!is_lost(rank, next)) reach(next, hops[rank]);
    }
  }
  return hops;
}

}  // namespace hawser::runtime
