#pragma once

// until_room: tries a call again while its queue is full, until there is room or its patience is over.

#include <cstdint>

#include <hawser/status.h>
#include <hawser/time.h>

#include "cli/bench/sampler.h"
#include "cli/interrupt.h"

namespace hawser::cli::bench {

/// Calls `begin` until it answers something else than kBusy, and `turn` after each refusal. Gives up with the last
/// refusal after `patience`, or where the user interrupts the program.
template <class Begin, class Turn>
auto until_room(Duration patience, Begin&& begin, Turn&& turn) -> decltype(begin()) {
  const std::int64_t deadline = now_ns() + patience.count();
  for (;;) {
    auto begun = begin();
    if (begun || begun.error().code() != Code::kBusy || now_ns() > deadline) return begun;
    if (Status interrupted = interrupt_status(); !interrupted.ok()) return interrupted;
    turn();
  }
}

}  // namespace hawser::cli::bench
