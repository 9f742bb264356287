#pragma once

// Planted: bugs put in on purpose, so that the simulator can be asked whether it finds them. A place that could go
// wrong asks `planted(Planted::kX)`, which is constant false, and so no code at all, but in the test build that defines
// HAWSER_PLANTED_BUGS. Ask in .cc files only: headers are shared by both builds.
//
// Thread rule: the bug planted is a thread's own, so runs on several threads do not meet. Lifetime: a PlantedScope's.

#include <cstdint>

namespace hawser::base {

enum class Planted : std::uint8_t {
  kNone = 0,
  // The streams' machine and its target side.
  kAckBeforeLanding,     ///< A write is acknowledged when its head came, not when its bytes did.
  kChunkAppliedTwice,    ///< A chunk sent again is counted again.
  kWrongOffsetOnResume,  ///< A payload that came in two reads goes on at the wrong place.
  kFenceSkipped,         ///< A superseded session goes on landing.
  kKeyUnchecked,
  kRightsUnchecked,
  kBoundsOffByOne,
  kGenerationUnchecked,  ///< A closed region is still found.
  kCloseIgnoresLanding,  ///< region_quiet does not look at bytes on their way in.
  kCancelledReadLands,   ///< A read's buffer is written after its end.
  kStaleIncarnation,     ///< A hello for another incarnation is taken.
  kReleasedEarly,        ///< Memory is given back when sent, not when released.
  kTimerForgotten,       ///< A port says that it has no deadline.
  // Mapped memory.
  kPinSkipped,
  kPinKeptByDead,  ///< The pin of a dead holder is never cleared.
  kMessageLost,
  // Sessions and transfers.
  kNotifyBeforeBytes,
  kNotifyOnReplay,  ///< A message sent again is delivered again.
  kMessageReordered,
  kCreditLost,
  kSignalTwice,
  kCompletionLost,  ///< Nothing is reported when a path dies.
  kCompletionTwice,
  kDeadlineIgnored,
  kRetryForgotten,    ///< A chunk whose path was lost is not sent again, and counted as done.
  kUntouchedClaimed,  ///< A write that ended badly says that it touched nothing.
  kRestartUnnoticed,
  kPriorityStarves,  ///< A blocked class is never tried again.
  kCount
};

#ifdef HAWSER_PLANTED_BUGS
inline namespace planted_build {
bool planted(Planted bug);
void plant(Planted bug);
}  // namespace planted_build
inline constexpr bool kCanPlant = true;
#else
constexpr bool planted(Planted) { return false; }
constexpr void plant(Planted) {}
inline constexpr bool kCanPlant = false;
#endif

/// Plants a bug for as long as it lives.
class PlantedScope {
 public:
  explicit PlantedScope(Planted bug) { plant(bug); }
  ~PlantedScope() { plant(Planted::kNone); }
  PlantedScope(const PlantedScope&) = delete;
  PlantedScope& operator=(const PlantedScope&) = delete;
};

}  // namespace hawser::base
