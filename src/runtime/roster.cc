#include "runtime/roster.h"

#include <algorithm>
#include <utility>

#include "runtime/mailbox.h"

namespace hawser::runtime {

void Roster::open(std::vector<Peer> peers) {
  peers_ = std::move(peers);
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    sources_.insert(source_of(peers_[rank]));
    rank_by_source_.emplace(source_of(peers_[rank]), rank);
  }
}

std::optional<std::uint32_t> Roster::rank_of(const Peer& peer) const {
  const auto found = rank_by_source_.find(source_of(peer));
  return found == rank_by_source_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint32_t> Roster::rank_of_root(std::uint32_t root_rank) const {
  const auto at = std::ranges::find(root_ranks_, root_rank);
  if (at == root_ranks_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(at - root_ranks_.begin());
}

}  // namespace hawser::runtime
