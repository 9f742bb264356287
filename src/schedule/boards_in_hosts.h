#pragma once

// Small collectives of several hosts whose ranks have boards: see runtime/board.h. Ranks of a host combine on their
// boards, leaders send messages between hosts, and what comes is told on boards. What leaders send is the same as where
// ranks of a host send messages, so each host may do its part in its own way.

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/collective.h"

namespace hawser::schedule {

/// One rank's part. Each phase begins when the one before has ended.
struct BoardsInHosts {
  std::optional<Call> before;  ///< On boards. Of ranks of the host, which are numbered in their order.
  /// Its result is here. Of a leader that is not the root: scratch, from its first element on.
  Buffer result = Buffer::kOutput;
  Schedule between;           ///< Messages. Empty at those that are no leaders.
  std::optional<Call> after;  ///< On boards.
};

/// So many turns of the boards each rank of the host takes.
inline constexpr std::uint64_t kTurnsInHosts = 2;

/// Of a call with `hosts`, and one of the operations that go on two levels.
BoardsInHosts boards_in_hosts(const Call& call, const CostModel& model);

}  // namespace hawser::schedule
