#pragma once

// RecentClock: the time for one who asks so often that asking is what takes the time.
//
// Reading CLOCK_MONOTONIC takes 20 ns, an idle turn of a lane all in all 50. The processor's own counter takes 9, and
// says whether the time that was read before is still good: for about a third of a microsecond it is. Where the system
// does not keep its own time by that counter, and for clocks that are not the system's, every call asks the clock.
//
// Thread rule: confined, or under its owner's lock.

#include <cstdint>

#include <hawser/time.h>

#include "base/short_while.h"

namespace hawser::base {

class RecentClock {
 public:
  /// The clock is borrowed.
  explicit RecentClock(const Clock& clock);

  /// The time, at most kStale ago. Never goes back.
  Instant now() { return fresh_.lasts() ? last_ : read(); }

  /// How old an answer may be: what kFreshTicks are where the counter runs at 1 GHz. None runs slower.
  static constexpr Duration kStale = std::chrono::nanoseconds(1024);

 private:
  static constexpr std::uint64_t kFreshTicks = 1024;

  Instant read();

  const Clock& clock_;
  ShortWhile fresh_;
  Instant last_;
};

}  // namespace hawser::base
