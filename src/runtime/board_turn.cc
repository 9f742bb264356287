#include "runtime/board_turn.h"

namespace hawser::runtime {

bool BoardTurn::has_news() const {
  if (seen_ == board_->size()) return true;
  Board::Entry entry;
  const Board::Sight sight = board_->look(seen_, turn_, &entry);
  return sight == Board::Sight::kThere || sight == Board::Sight::kBad;
}

bool BoardTurn::awaits(std::uint32_t rank) const {
  Board::Entry entry;
  return rank >= seen_ && board_->look(rank, turn_, &entry) != Board::Sight::kThere;
}

bool BoardTurn::is_still_there() {
  for (std::uint32_t rank = 0; rank < board_->size(); ++rank) {
    if (board_->is_still_there(rank, turn_)) continue;
    seen_ = rank;
    return false;
  }
  return true;
}

}  // namespace hawser::runtime
