#pragma once

// The bugs planted in QUIC connections. The mode does not count.

#include "planted_program.h"

namespace hawser::quicsim {

using base::Planted;
using simulation::PlantedBug;
inline constexpr PlantedBug kPlantedBugs[] = {
    {Planted::kTagUnchecked, "tag_unchecked", sim::Mode::kStream, {"another byte", "which is no end", "for no reason"}},
    {Planted::kRoomUntold, "room_untold", sim::Mode::kStream, {"the writer waits"}},
    {Planted::kCreditKept, "credit_kept", sim::Mode::kStream, {"the writer waits", "the reader waits"}},
    {Planted::kStreamCreditKept, "stream_credit_kept", sim::Mode::kStream, {"the writer waits", "the reader waits"}},
    {Planted::kEndEarly, "end_early", sim::Mode::kStream, {"ended after", "which is no end"}},
    {Planted::kUnreadUnbounded, "unread_unbounded", sim::Mode::kStream, {"bytes are unread"}},
    {Planted::kResetUntold, "reset_untold", sim::Mode::kStream, {"not told of its abort"}},
    {Planted::kIdsKept, "ids_kept", sim::Mode::kStream, {"keeps ids"}},
    {Planted::kLeftUnread, "left_unread", sim::Mode::kStream, {"the writer waits", "it stays"}},
    {Planted::kPastUnread, "past_unread", sim::Mode::kStream, {"the writer waits", "it stays"}},
    {Planted::kUnansweredKept, "unanswered_kept", sim::Mode::kStream, {"another address"}},
    {Planted::kMovesUnproven, "moves_unproven", sim::Mode::kStream, {"has not answered"}},
    {Planted::kChunkMistaken, "chunk_mistaken", sim::Mode::kStream, {"another byte"}},
    {Planted::kStallKept, "stall_kept", sim::Mode::kStream, {"waits"}, 5046},
    {Planted::kHoleKept, "hole_kept", sim::Mode::kStream, {"waits"}, 3516},
    {Planted::kLateCounted, "late_counted", sim::Mode::kStream, {"FLOW_CONTROL"}, 23090},
    {Planted::kBlockedKept, "blocked_kept", sim::Mode::kStream, {"the writer waits"}},
    {Planted::kPushOvertakes, "push_overtakes", sim::Mode::kStream, {"another byte"}},
    {Planted::kPushUnpaid, "push_unpaid", sim::Mode::kStream, {"the writer waits", "bytes are unread"}},
    {Planted::kReleasedEarly, "released_early", sim::Mode::kStream, {"another byte"}},
    {Planted::kDueForgotten, "due_forgotten", sim::Mode::kStream, {"again and again", "the reader waits"}},
};

}  // namespace hawser::quicsim
