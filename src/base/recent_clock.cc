#include "base/recent_clock.h"

namespace hawser::base {

// For clocks that are not the system's the counter says nothing.
RecentClock::RecentClock(const Clock& clock) : clock_(clock), fresh_(&clock == &Clock::steady() ? kFreshTicks : 0) {}

Instant RecentClock::read() {
  fresh_.begin();
  last_ = clock_.now();
  return last_;
}

}  // namespace hawser::base
