#include "agent/engine/better_paths.h"

#include <algorithm>

#include "base/planted.h"

namespace hawser::agent {
namespace {

constexpr proto::BackoffOptions kSeekPauses = {.first = std::chrono::seconds(1), .longest = std::chrono::minutes(1)};

}  // namespace

/// In place of the path that was lost last, and no other. Of one that was lost before, either writes were under way:
/// then it is among `lost`, and has a path opened in its place of its own before anything goes on. Or nothing was that
/// could still land, and there is only the peer's end of it, which nobody here answers: its socket or its heartbeats
/// end that, and what the peer still sends by it has no receiver, so the peer sends it again by another.
std::uint64_t BetterPaths::open(Session& session, Instant deadline, Instant now) {
  if (session.control() == nullptr) return 0;  // Whoever connects begins with the best.
  for (const std::size_t i : uses_.reach.candidates(*session.peer)) {
    if (session.has_path_by(i)) return 0;
    if (uses_.opener.open(session, i, deadline, now, session.last_session)) return session.paths.back().serial;
  }
  return 0;
}

bool BetterPaths::is_opening(const Session& session, std::uint64_t serial) {
  return std::ranges::any_of(session.paths,
                             [&](const PathEntry& entry) { return entry.serial == serial && !entry.agreed; });
}

/// True where a backend has failed that leads to the peer and comes before all that carry transfers.
bool BetterPaths::is_missing(const Session& session) const {
  for (const std::size_t i : uses_.reach.candidates(*session.peer)) {
    if (session.has_path_by(i)) return false;
    if (session.failed.contains(i)) return true;
  }
  return false;
}

void BetterPaths::seek_later(Session& session, Instant now) {
  SessionAlarm& alarm = session.alarms[SessionTimer::kBetter];
  if (uses_.sessions.is_closing() || alarm.hook.is_set() || !is_missing(session)) return;
  if (base::planted(base::Planted::kBetterForgotten)) return;
  if (!session.better_backoff) session.better_backoff.emplace(kSeekPauses, Instant::max());
  uses_.timers.set(alarm, session.better_backoff->next(now, uses_.rng).value_or(Instant::max()));
}

void BetterPaths::on_path_agreed(Session& session, Instant now) {
  if (is_missing(session)) return seek_later(session, now);
  uses_.timers.clear(session.alarms[SessionTimer::kBetter]);
}

void BetterPaths::seek(Session& session, Instant now) {
  // A path that is on its way now is heard of again: it is agreed upon, or ends.
  if (open(session, now + uses_.peer_timeout, now) == 0) seek_later(session, now);
}

void BetterPaths::seek_now(Session& session, Instant now) {
  if (session.control() == nullptr) return;
  session.better_backoff.reset();
  uses_.timers.set(session.alarms[SessionTimer::kBetter], now);
}

}  // namespace hawser::agent
