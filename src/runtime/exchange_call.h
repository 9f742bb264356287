#pragma once

// ExchangeCall: one rank's part in the first turn of an all_to_all on boards. It writes the counts of what it sends and
// gets, which no other rank knows, and behind them all that it sends, where that fits. If all ranks could do so the
// call is over with this turn. Else the ranks know each other's counts then, and go on piece by piece (StagedCall).
//
// On a board: counts:u64[size], in_counts:u64[size], and all blocks in the order of ranks, or none.
//
// Thread rule: under the lane's lock.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/board.h"
#include "runtime/board_phase.h"
#include "runtime/board_turn.h"
#include "schedule/staging.h"

namespace hawser::runtime {

class ExchangeCall final : public BoardPhase {
 public:
  /// `board` and `call` outlive it. The buffers are the caller's until it is over, and may overlap: what a rank sends
  /// is on its board before it gets anything.
  ExchangeCall(Board& board, const schedule::Call& call, Buffers buffers, std::uint64_t turn, std::uint64_t number,
               std::uint64_t digest);
  ExchangeCall(Board& board, schedule::Call&& call, Buffers buffers, std::uint64_t turn, std::uint64_t number,
               std::uint64_t digest) = delete;

  /// Another one of the same call has written, and goes no further.
  void note_written() { has_written_ = true; }
  Step go_on() override;
  bool has_news() const override;
  std::uint64_t turn() const override { return turn_.turn(); }
  std::uint32_t culprit() const override { return culprit_; }

  // Once it is over.
  /// What all ranks told. They may differ: then nothing has come.
  schedule::AllCounts& counts() { return counts_; }
  /// All blocks have come, and are in the output.
  bool has_all() const { return has_all_; }

 private:
  bool is_awaited(std::uint32_t rank) const override;
  std::uint64_t letter_bytes() const { return 2 * sizeof(std::uint64_t) * call_.size; }
  /// Bytes of all blocks of a rank that sends so many elements to each. None: they do not fit.
  template <typename Count>
  std::optional<std::uint64_t> fitting(const Count& count) const;
  std::optional<std::uint64_t> brought(std::uint32_t from) const;
  void write();
  void read_counts();
  bool are_sizes_right();
  void take_blocks();

  const schedule::Call& call_;
  const Buffers buffers_;
  const std::uint64_t number_, digest_;
  schedule::AllCounts counts_;
  BoardTurn turn_;
  std::uint32_t culprit_ = 0;
  bool has_written_ = false, has_all_ = false;
};

}  // namespace hawser::runtime
