#include "runtime/board_phase.h"

namespace hawser::runtime {

std::vector<std::uint32_t> BoardPhase::awaited() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t rank = 0; rank < board_.size(); ++rank) {
    if (is_awaited(rank)) all.push_back(rank);
  }
  return all;
}

bool BoardPhase::awaits_one_on(int core) const {
  for (std::uint32_t rank = 0; rank < board_.size(); ++rank) {
    if (board_.stood_on(rank, core) && is_awaited(rank)) return true;
  }
  return false;
}

std::optional<std::uint32_t> BoardPhase::out_of_sight() const {
  for (std::uint32_t rank = 0; rank < board_.size(); ++rank) {
    if (is_awaited(rank) && board_.is_gone(rank)) return rank;
  }
  return std::nullopt;
}

}  // namespace hawser::runtime
