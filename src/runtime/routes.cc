#include "runtime/routes.h"

#include <utility>

namespace hawser::runtime {

Routes::Routes(Topology topology, std::uint32_t rank, std::uint32_t size)
    : topology_(std::move(topology)), rank_(rank), graph_(topology_, size), hops_(graph_.next_hops(rank, {})) {}

std::uint64_t Routes::hops_max() const { return std::uint64_t{size()} * (changes() + 1); }

bool Routes::exclude(std::uint32_t rank) {
  if (!gone_.insert(rank).second) return false;
  hops_ = graph_.next_hops(rank_, gone_);
  return true;
}

bool Routes::adopt(std::uint64_t generation, std::span<const std::uint32_t> members) {
  if (generation <= generation_) return false;
  generation_ = generation;
  graph_ = Graph(topology_, size(), members);
  hops_ = graph_.next_hops(rank_, gone_);
  return true;
}

}  // namespace hawser::runtime
