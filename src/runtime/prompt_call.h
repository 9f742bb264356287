#pragma once

// PromptCall: a collective that goes by the boards of one host, carried through at once by the thread that called it.
// It takes no memory, and nobody else knows of it. If the other ranks do not come within a moment, or something is
// wrong, its caller leaves the call to a Collective, which goes on from what is on this rank's board
// (Collective::take_over).
//
// Thread rule: under the lane's lock, from the call's begin to its end. Lifetime: board and call outlive it.

#include <cstdint>

#include <optional>

#include "runtime/board_call.h"
#include "runtime/collective_call.h"
#include "runtime/exchange_call.h"
#include "runtime/operation.h"

namespace hawser::runtime {

/// Of a collective that ended well at once: what is left of it for whoever asks.
struct PromptEnd final : Operation {
  explicit PromptEnd(schedule::Algorithm its) : Operation(OperationKind::kSeveral), algorithm(its) {
    final.store(true, std::memory_order_relaxed);
  }
  std::string_view algorithm_name() const override { return to_string(algorithm); }

  const schedule::Algorithm algorithm;
};

class PromptCall {
 public:
  /// Whether such a call, settled (CollectiveMaker::settle), can be one: by the boards of one host, in one turn.
  static bool can_be(const CollectiveCall& call, schedule::Algorithm algorithm);
  /// `call` can be one.
  PromptCall(Board& board, const CollectiveCall& call, std::uint64_t turn, std::uint64_t number, std::uint64_t digest);

  /// What this rank has to give. False: a rank has not read yet what is in the slot.
  bool write() { return phase_.go_on() == BoardPhase::Step::kMoved; }
  /// Looks for what the others wrote, some microseconds long. True: all is there, and the output as it must be. False:
  /// not yet, or something is wrong. `is_crowded`: to look may keep those from running for whom it looks.
  bool carry_through(bool is_crowded);

 private:
  BoardPhase& begin(Board& board, std::uint64_t turn, std::uint64_t number, std::uint64_t digest);
  bool has_all(bool is_crowded);

  const CollectiveCall& call_;
  std::optional<BoardCall> board_call_;
  std::optional<ExchangeCall> exchange_call_;
  BoardPhase& phase_;  ///< One of these.
};

}  // namespace hawser::runtime
