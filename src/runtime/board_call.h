#pragma once

// BoardCall: one rank's part in a collective that goes by boards. It writes this rank's input and the digest of the
// call once the slot is free, and waits until all ranks have done so. Then it takes the result from what all wrote, in
// the order of ranks: so all ranks have the same bits.
//
// Every rank waits for every other one, also where it needs nothing of it (the root of a broadcast): so each finds out
// whether the ranks called the same.
//
// Thread rule: under the lane's lock.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/board.h"
#include "runtime/board_phase.h"
#include "runtime/board_turn.h"
#include "schedule/collective.h"

namespace hawser::runtime {

class BoardCall final : public BoardPhase {
 public:
  /// `board` and `call` outlive it. The buffers are the caller's until it is over.
  BoardCall(Board& board, const schedule::Call& call, Buffers buffers, std::uint64_t turn, std::uint64_t number,
            std::uint64_t digest);
  BoardCall(Board& board, schedule::Call&& call, Buffers buffers, std::uint64_t turn, std::uint64_t number,
            std::uint64_t digest) = delete;

  /// Another one of the same call has written, and goes no further.
  void note_written() { has_written_ = true; }
  Step go_on() override;
  bool has_news() const override;
  std::uint64_t turn() const override { return written_.turn(); }
  std::uint32_t culprit() const override { return written_.culprit(); }

 private:
  bool is_awaited(std::uint32_t rank) const override;
  std::span<const std::byte> own_bytes() const;
  void take_result();
  void combine_first(std::uint32_t end);
  void take_blocks(const std::byte* own);
  void take_own_block();
  void combine(std::uint64_t at, std::uint64_t count);

  const schedule::Call& call_;
  const Buffers buffers_;
  const std::uint64_t number_, digest_;
  bool has_written_ = false;
  BoardTurn written_;  ///< By all.
};

}  // namespace hawser::runtime
