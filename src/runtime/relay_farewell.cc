#include "runtime/relay_farewell.h"

#include <algorithm>
#include <functional>

namespace hawser::runtime {
namespace {

constexpr Duration kFarewellPause = std::chrono::microseconds(100);

/// Turns the agent until `is_done`, which is called under the lane.
bool turn_until(RankSeat& seat, Instant until, const std::function<bool(Instant now)>& is_done) {
  for (;;) {
    bool done = false;
    const Status status =
        agent::inner::under_lane(seat.agent, "World::leave", [&](Instant now) { done = is_done(now); });
    if (done || !status.ok()) return done;
    const Instant now = agent::inner::now(seat.agent);
    if (now >= until) return false;
    static_cast<void>(agent::inner::wait_until(
        seat.agent, [] { return false; }, std::min(until, now + kFarewellPause)));
  }
}

}  // namespace

bool say_farewell(RankSeat& seat, bool leaves, bool waits, Instant until) {
  Relay& relay = *seat.relay;
  if (!turn_until(seat, until, [&](Instant now) { return relay.drain(now); })) return false;
  if (!leaves) return true;
  static_cast<void>(agent::inner::under_lane(seat.agent, "World::leave", [&](Instant now) { relay.say_leaving(now); }));
  if (waits && !agent::inner::wait_until(
                   seat.agent, [&] { return relay.all_leave(); }, until)) {
    return false;
  }
  return turn_until(seat, until, [&](Instant) { return relay.is_idle(); });
}

}  // namespace hawser::runtime
