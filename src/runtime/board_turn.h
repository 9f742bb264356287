#pragma once

// BoardTurn: what the ranks of a host wrote on their boards for one turn, as one of them comes to see it, in the order
// of ranks. It uses nothing that a rank cannot have written in the same call.
//
// Thread rule: under the lane's lock. Lifetime: the board outlives it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/planted.h"
#include "runtime/board.h"

namespace hawser::runtime {

class BoardTurn {
 public:
  enum class Sight : std::uint8_t {
    kWaits,
    kAll,      ///< All have written.
    kDiffers,  ///< `culprit` called something else,
    kBad,      ///< or wrote what no rank of this world can have written.
  };

  BoardTurn(Board& board, std::uint64_t turn, std::uint64_t number, std::uint64_t digest)
      : board_(&board), turn_(turn), number_(number), digest_(digest), written_(board.seen(turn)) {}

  std::uint64_t turn() const { return turn_; }
  std::uint32_t culprit() const { return seen_; }
  /// `bytes_of(rank)`: so many a rank writes that calls the same.
  template <typename BytesOf>
  Sight look(const BytesOf& bytes_of) {
    return look_if([&](std::uint32_t rank, std::uint64_t bytes) { return bytes == bytes_of(rank); });
  }
  /// `fits(rank, bytes)`: a rank that calls the same may write so many.
  template <typename Fits>
  Sight look_if(const Fits& fits) {
    while (seen_ < board_->size()) {
      Board::Entry entry;
      const Board::Sight sight = board_->look(seen_, turn_, &entry);
      if (sight == Board::Sight::kBad) return Sight::kBad;
      if (sight != Board::Sight::kThere) return Sight::kWaits;
      const bool is_read = !base::planted(base::Planted::kBoardDigestUnread);
      if (is_read && (entry.number != number_ || entry.digest != digest_)) return Sight::kDiffers;
      if (!fits(seen_, entry.bytes.size())) return Sight::kBad;
      written_[seen_++] = entry.bytes;
    }
    return Sight::kAll;
  }
  /// Whether `look` would get further.
  bool has_news() const;
  /// By rank, once all have written.
  std::span<const std::span<const std::byte>> written() const { return written_; }
  bool awaits(std::uint32_t rank) const;
  /// What was read since `look` was there all the time. False: a board is out of sight, and nothing that was read
  /// counts; it is awaited anew.
  bool is_still_there();

 private:
  Board* board_;
  std::uint64_t turn_, number_, digest_;
  std::uint32_t seen_ = 0;                         ///< All ranks before it have written.
  std::span<std::span<const std::byte>> written_;  ///< The board's.
};

}  // namespace hawser::runtime
