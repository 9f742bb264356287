#pragma once

// How a thread that waits for a collective on boards looks at them for a moment, before it leaves the waiting to the
// lane: the lane's turns take longer than most waits for boards.
//
// Thread rule: any thread. It enters the lane for each look.

#include <functional>

#include "runtime/board_room.h"
#include "runtime/operation.h"
#include "runtime/rank_seat.h"

namespace hawser::runtime {

/// Returns once `operation` has ended, or has not moved for a moment. `is_broken`, asked under the lane: the world does
/// nothing together any more. What it references outlives the call.
//
// In its pauses it lets others run: a rank that it waits for may be among them. It pauses soon if that rank stood on
// this core when it told last, or if there are more ranks of this host than cores. Where yields cost slices, and no
// awaited rank stood here, it does not yield: what is left of the wait is the lane's, which spins, yields and sleeps.
// Where other programs want the cores it looks twice, and leaves the wait to the lane: see base/spin_credit.h.
void look_at_boards(const RankSeat& seat, BoardRoom& room, const Operation& operation,
                    const std::function<bool()>& is_broken);

}  // namespace hawser::runtime
