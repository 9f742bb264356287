#include "runtime/routes.h"

#include <utility>

namespace hawser::runtime {

Routes::Routes(Topology topology, std::uint32_t rank, std::uint32_t size)
    : topology_(std::move(topology)),
      rank_(rank),
      first_(topology_, size),
      graph_(first_),
      hops_(graph_.next_hops(rank, {})) {}

void Routes::find_ways() { hops_ = graph_.next_hops(rank_, gone_, lost_); }

std::uint64_t Routes::hops_max() const { return std::uint64_t{size()} * (changes() + 1); }

bool Routes::exclude(std::uint32_t rank) {
  if (!gone_.insert(rank).second) return false;
  find_ways();
  return true;
}

bool Routes::lose_link(std::uint32_t from, std::uint32_t to) {
  if (!first_.has_edge(from, to) && !graph_.has_edge(from, to)) return false;
  if (!said_.insert({from, to}).second) return false;
  if (lost_.insert(link_of(from, to)).second) find_ways();
  return true;
}

bool Routes::adopt(std::uint64_t generation, std::span<const std::uint32_t> members) {
  if (generation <= generation_) return false;
  generation_ = generation;
  graph_ = Graph(topology_, size(), members);
  find_ways();
  return true;
}

}  // namespace hawser::runtime
