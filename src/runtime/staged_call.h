#pragma once

// StagedCall: one rank's part in a collective that goes piece by piece over boards (schedule/staging.h). It does what
// it can in this order: it writes pieces of its input as long as it has slots, it writes its sums of a piece that all
// have written, and it takes what all have written. The others wait least that way.
//
// Every rank waits for every other one in each piece, as in a BoardCall: so a difference in what they call is found in
// the first piece.
//
// Thread rule: under the lane's lock.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/board.h"
#include "runtime/board_phase.h"
#include "runtime/board_turn.h"
#include "schedule/staging.h"

namespace hawser::runtime {

class StagedCall final : public BoardPhase {
 public:
  /// `board` and `call` outlive it. The buffers are the caller's until it is over; the input is the output, as the call
  /// says, or they do not overlap. `counts`: of an all_to_all.
  StagedCall(Board& board, const schedule::Call& call, schedule::AllCounts counts, Buffers buffers, std::uint64_t turn,
             std::uint64_t number, std::uint64_t digest);
  StagedCall(Board& board, schedule::Call&& call, schedule::AllCounts counts, Buffers buffers, std::uint64_t turn,
             std::uint64_t number, std::uint64_t digest) = delete;

  Step go_on() override;
  bool has_news() const override;
  std::uint64_t turn() const override { return first_turn_; }
  std::uint32_t culprit() const override { return culprit_; }
  /// Bytes that it has copied or combined since it began.
  std::uint64_t moved() const { return moved_; }

 private:
  std::uint64_t turn_of_input(std::uint64_t piece) const { return first_turn_ + piece * staging_.turns_of_piece(); }
  std::uint64_t turn_of_sums(std::uint64_t piece) const { return turn_of_input(piece) + 1; }
  BoardTurn turn_at(std::uint64_t turn) const { return {board_, turn, number_, digest_}; }
  bool may_write() const;
  bool may_sum() const;
  Step write();
  Step sum();
  Step take();
  Step see(BoardTurn& turn, bool are_sums, std::uint64_t piece);
  bool has_lost(BoardTurn& turn);
  Step look_for_lost() const;
  void act(std::byte* board, std::span<const std::span<const std::byte>> read);
  bool is_awaited(std::uint32_t rank) const override;

  const schedule::Call& call_;
  const Buffers buffers_;
  const schedule::Staging staging_;
  const std::uint64_t first_turn_, number_, digest_;
  std::uint64_t written_ = 0, summed_ = 0, taken_ = 0;  ///< Pieces.
  BoardTurn inputs_;                                    ///< The turn of the inputs that this rank reads next.
  BoardTurn sums_;  ///< The turn of the sums that it takes next. Unused where there are none.
  std::uint32_t culprit_ = 0;
  bool is_lost_ = false;  ///< A board went while this rank combined what is there: it cannot do that again.
  std::uint64_t moved_ = 0;
  std::vector<schedule::Step> steps_;
  std::vector<std::byte> scratch_;
};

}  // namespace hawser::runtime
