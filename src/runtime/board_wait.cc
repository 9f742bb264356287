#include "runtime/board_wait.h"

#include <sched.h>

#include "base/spin.h"
#include "base/spin_credit.h"
#include "base/yield_price.h"

namespace hawser::runtime {
namespace {

using agent::inner::Need;

constexpr int kRounds = 16, kLooks = 24, kFewLooks = 2;

bool has_ended(const Operation& operation) { return operation.final.load(std::memory_order_relaxed); }

struct Seen {
  bool is_awaited_here = false;  ///< A rank that it waits for told last from this core.
  bool has_moved = false;
};

/// Under the lane: looks until there is something new, but not for long.
Seen look(BoardRoom& room, const Operation& operation, int looks, Instant now) {
  Seen seen;
  for (int i = 0; i < looks && room.has_users() && !has_ended(operation); ++i) {
    if (i == kFewLooks) {
      seen.is_awaited_here = room.wait_on(::sched_getcpu());
      if (seen.is_awaited_here || room.is_crowded()) break;
    }
    if (room.look(now) == 0) {
      base::cpu_relax();
    } else {
      seen.has_moved = true;
    }
  }
  return seen;
}

}  // namespace

void look_at_boards(const RankSeat& seat, BoardRoom& room, const Operation& operation,
                    const std::function<bool()>& is_broken) {
  base::YieldPrice& yields = agent::inner::yields(seat.agent);
  base::SpinCredit& spins = agent::inner::spins(seat.agent);
  Seen seen;
  bool only_looked = true;  // This thread has not lost its core for long.
  const auto note_gap = [&](Duration took) {
    if (took < base::SpinCredit::kLoss) return;
    spins.lost(took, agent::inner::now(seat.agent));
    only_looked = false;
  };
  for (int round = 0; round < kRounds && !operation.final.load(std::memory_order_acquire); ++round) {
    if (seen.has_moved) round = 1;
    if (round > 0 && (seen.is_awaited_here || yields.patience() == Duration::zero())) note_gap(yields.yield());
    bool has_users = false, may_spin = true;
    const auto turn = [&](Instant now) {
      may_spin = spins.may_spin(now);
      seen = look(room, operation, may_spin ? kLooks : kFewLooks, now);
      if (!seen.has_moved) note_gap(agent::inner::now(seat.agent) - now);
      const bool has_begun_others = seat.mailbox->run_jobs(now);
      has_users = room.has_users();
      if (room.take_messages() || is_broken()) return Need::kTurn;
      // Others on boards may have been left to a driver that sleeps until it is rung: this rank's boards are looked at.
      const bool needs_driver = !operation.is_waited || has_begun_others || (has_ended(operation) && has_users);
      return needs_driver ? Need::kDriver : Need::kNothing;
    };
    static_cast<void>(agent::inner::under_lane_lightly(seat.agent, "wait", std::cref(turn), !operation.is_waited));
    if (!has_users || !may_spin) break;
  }
  if (only_looked && operation.final.load(std::memory_order_relaxed)) spins.found();
}

}  // namespace hawser::runtime
