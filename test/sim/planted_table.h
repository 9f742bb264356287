#pragma once

// The planted bugs, the mode in which each is looked for, and what the judge must say of it (one of these parts).

#include <array>
#include <string_view>

#include "base/planted.h"
#include "sim/simulation.h"

namespace hawser::simulation {

inline constexpr std::uint64_t kPlantedSeedsMax = 2000;

struct PlantedBug {
  base::Planted bug;
  std::string_view name;
  sim::Mode mode;
  std::array<std::string_view, 5> complaints;
};

using base::Planted;
inline constexpr PlantedBug kPlantedBugs[] = {
    {Planted::kAckBeforeLanding,
     "ack_before_landing",
     sim::Mode::kStream,
     {"ended as", "its bytes are not at", "gave", "never rose", "never came"}},
    {Planted::kKeyUnchecked, "key_unchecked", sim::Mode::kStream, {"though nothing gives it the right"}},
    {Planted::kRightsUnchecked, "rights_unchecked", sim::Mode::kStream, {"though nothing gives it the right"}},
    {Planted::kBoundsUnchecked, "bounds_unchecked", sim::Mode::kStream, {"though nothing gives it the right"}},
    {Planted::kGenerationUnchecked, "generation_unchecked", sim::Mode::kStream, {"was touched after close said kOk"}},
    {Planted::kLandingNotStopped, "landing_not_stopped", sim::Mode::kStream, {"was touched after close said kOk"}},
    {Planted::kCancelledReadLands, "cancelled_read_lands", sim::Mode::kStream, {"was touched after transfer"}},
    {Planted::kReleasedEarly,
     "released_early",
     sim::Mode::kStream,
     {"nothing parted them", "senseless frame", "brought other bytes", "holds neither"}},
    {Planted::kStaleIncarnation,
     "stale_incarnation",
     sim::Mode::kStream,
     {"forgot this session", "nothing parted them", "to a peer that is gone"}},
    {Planted::kTimerForgotten,
     "timer_forgotten",
     sim::Mode::kStream,
     {"is not final", "ended with timed out", "never"}},
    {Planted::kWakeupLost,
     "wakeup_lost",
     sim::Mode::kStream,
     {"gives no room", "without acknowledgement", "never came", "nothing held it up"}},
    {Planted::kPinSkipped, "pin_skipped", sim::Mode::kMapped, {"was touched after close said kOk"}},
    {Planted::kMessageLost,
     "message_lost",
     sim::Mode::kMapped,
     {"a message of the session is missing", "nothing parted them"}},
    {Planted::kDeadPinKept, "dead_pin_kept", sim::Mode::kMapped, {"close did not end"}},
    {Planted::kChunkCountedTwice,
     "chunk_counted_twice",
     sim::Mode::kStream,
     {"came before its bytes", "before its bytes were visible"}},
    {Planted::kReplayForgotten,
     "replay_forgotten",
     sim::Mode::kStream,
     {"a message of the session is missing", "nothing parted them"}},
    {Planted::kNotifyBeforeBytes,
     "notify_before_bytes",
     sim::Mode::kStream,
     {"came before its bytes", "before its bytes were visible"}},
    {Planted::kMessageReordered, "message_reordered", sim::Mode::kStream, {"expected message"}},
    {Planted::kRestartUnnoticed,
     "restart_unnoticed",
     sim::Mode::kStream,
     {"expected message", "though nothing held it up", "nothing parted them", "without acknowledgement", "came twice"}},
    {Planted::kCreditLost, "credit_lost", sim::Mode::kStream, {"take up room"}},
    {Planted::kSignalCreditLost, "signal_credit_lost", sim::Mode::kStream, {"take up room"}},
    {Planted::kPlaceKept, "place_kept", sim::Mode::kStream, {"took room for"}},
    {Planted::kCancelUntold,
     "cancel_untold",
     sim::Mode::kStream,
     {"notifications that wait for bytes", "take up room"}},
    {Planted::kUsersForgotten,
     "users_forgotten",
     sim::Mode::kStream,
     {"its bytes were visible", "was touched", "its bytes are not at", "holds neither"}},
    {Planted::kCompletionLost, "completion_lost", sim::Mode::kStream, {"is not final"}},
    {Planted::kCompletionTwice,
     "completion_twice",
     sim::Mode::kStream,
     {"was completed twice", "but its completion says"}},
    {Planted::kDeadlineIgnored, "deadline_ignored", sim::Mode::kStream, {"without rest", "is not final"}},
    {Planted::kRetryForgotten,
     "retry_forgotten",
     sim::Mode::kStream,
     {"brought other bytes", "its bytes are not at", "before its bytes"}},
    {Planted::kUntouchedClaimed, "untouched_claimed", sim::Mode::kStream, {"left the target untouched"}},
    {Planted::kBlockedForgotten,
     "blocked_forgotten",
     sim::Mode::kMapped,
     {"is not final", "never came", "nothing held it up", "without acknowledgement"}},
    {Planted::kBetterForgotten, "better_forgotten", sim::Mode::kStream, {"by a lesser path"}},
    {Planted::kAtomicAskedTwice, "atomic_asked_twice", sim::Mode::kStream, {"was done twice"}},
    {Planted::kAtomicAnswerMistaken,
     "atomic_answer_mistaken",
     sim::Mode::kStream,
     {"which does not fit", "in which", "was done after it had ended", "no order of operations", "and had been done"}},
    {Planted::kAtomicRightsUnchecked,
     "atomic_rights_unchecked",
     sim::Mode::kStream,
     {"though nothing gives it the right"}},
    {Planted::kAtomicBoundsUnchecked,
     "atomic_bounds_unchecked",
     sim::Mode::kMapped,
     {"though nothing gives it the right"}},
    {Planted::kAtomicOutcomeClaimed,
     "atomic_outcome_claimed",
     sim::Mode::kStream,
     {"and had been done", "was done after it had ended"}},
    {Planted::kAtomicNotCompared,
     "atomic_not_compared",
     sim::Mode::kMapped,
     {"lost", "was changed by no operation", "was done twice", "which does not fit"}},
    {Planted::kAtomicsNotEnded,
     "atomics_not_ended",
     sim::Mode::kStream,
     {"is not final", "never ended", "atomic operation is not final"}},
    {Planted::kAtomicAnswerCreditLost, "atomic_answer_credit_lost", sim::Mode::kStream, {"take up room"}},
};

}  // namespace hawser::simulation
