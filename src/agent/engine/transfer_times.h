#pragma once

// TransferTimes: what good transfers took, for latencies and for the health of paths.
//
// Thread rule: confined to the lane.

#include <cstdint>

#include <hawser/counters.h>
#include <hawser/time.h>

#include "agent/engine/ports.h"
#include "agent/session.h"
#include "plan/split.h"

namespace hawser::agent {

class TransferTimes {
 public:
  explicit TransferTimes(const Ports& ports) : ports_(ports) {}

  /// True where the next one that is over within submit is timed. A small one takes as long as reading the clock twice
  /// does, so only some are.
  static bool is_timed_at_once(const FlowCounters& flow, std::uint64_t bytes);
  /// `entry`: the path that it took; null where that is gone. `was_alone`: nothing else was in flight to the peer, and
  /// it waited for nothing, so the path can be judged by it.
  void note(Session& session, PathEntry* entry, const plan::Pieces& pieces, Duration took, bool was_alone) const;

 private:
  const Ports& ports_;
};

}  // namespace hawser::agent
