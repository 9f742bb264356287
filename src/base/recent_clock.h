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

namespace hawser::base {

/// Whether the system keeps its time by the processor's counter, so that reading it is cheap and it does not stop.
bool counter_keeps_time() noexcept;

/// The processor's counter; 0 where none is used.
#if defined(__x86_64__)
inline std::uint64_t counter_ticks() { return __builtin_ia32_rdtsc(); }
#else
inline std::uint64_t counter_ticks() { return 0; }
#endif

class RecentClock {
 public:
  /// The clock is borrowed.
  explicit RecentClock(const Clock& clock);

  /// The time, at most kStale ago. Never goes back.
  Instant now() {
    if (!counts_ || reuses_ == kReusesMax || counter_ticks() - read_at_ >= kFreshTicks) return read();
    ++reuses_;
    return last_;
  }

  /// How old an answer may be: what kFreshTicks are where the counter runs at 1 GHz. None runs slower.
  static constexpr Duration kStale = std::chrono::nanoseconds(1024);

 private:
  static constexpr std::uint64_t kFreshTicks = 1024;
  static constexpr std::uint32_t kReusesMax = 64;  ///< So that a counter that stands still stops nothing.

  Instant read();

  const Clock& clock_;
  const bool counts_;
  std::uint32_t reuses_ = kReusesMax;
  std::uint64_t read_at_ = 0;
  Instant last_;
};

}  // namespace hawser::base
