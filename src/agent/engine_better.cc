// Back to a better path: a session that lost the path of a backend it prefers goes on by another one, and tries the
// better again, in pauses that grow. Nothing stays on a socket because a device was away for a moment.

#include <algorithm>

#include "agent/core.h"
#include "agent/engine.h"
#include "base/planted.h"

namespace hawser::agent {
namespace {

constexpr proto::BackoffOptions kSeekPauses = {.first = std::chrono::seconds(1), .longest = std::chrono::minutes(1)};

}  // namespace

/// In place of the path that was lost last, and no other. Of one that was lost before, either writes were under way:
/// then it is among `lost`, and has a path opened in its place of its own before anything goes on. Or nothing was that
/// could still land, and there is only the peer's end of it, which nobody here answers: its socket or its heartbeats
/// end that, and what the peer still sends by it has no receiver, so the peer sends it again by another.
std::uint64_t Engine::open_better_path(Session& session, Instant deadline, Instant now) {
  if (session.control() == nullptr) return 0;  // Whoever connects begins with the best.
  for (const std::size_t i : candidates(*session.peer)) {
    if (session.has_path_by(i)) return 0;
    if (open_path(session, i, deadline, now, session.last_session)) return session.paths.back().serial;
  }
  return 0;
}

bool Engine::is_opening(Session& session, std::uint64_t serial) {
  return std::any_of(session.paths.begin(), session.paths.end(),
                     [&](const PathEntry& entry) { return entry.serial == serial && !entry.agreed; });
}

/// Whether a backend that leads to the peer and comes before all that carry transfers has failed.
bool Engine::is_better_missing(Session& session) {
  for (const std::size_t i : candidates(*session.peer)) {
    if (session.has_path_by(i)) return false;
    if (session.failed.contains(i)) return true;
  }
  return false;
}

void Engine::seek_better_later(Session& session, Instant now) {
  SessionAlarm& alarm = session.alarms[SessionTimer::kBetter];
  if (closing_ || alarm.hook.is_set() || !is_better_missing(session)) return;
  if (base::planted(base::Planted::kBetterForgotten)) return;
  if (!session.better_backoff) session.better_backoff.emplace(kSeekPauses, Instant::max());
  timers_.set(alarm, session.better_backoff->next(now, rng_).value_or(Instant::max()));
}

std::size_t Engine::seek_better(Session& session, Instant now) {
  // A path that is on its way now is heard of again: it is agreed upon, or ends.
  if (open_better_path(session, now + core_.options.peer_timeout, now) == 0) seek_better_later(session, now);
  return 1;
}

void Engine::reconnect(Session& session, Instant now) {
  if (closing_) return;
  want(session, now);
  if (session.alarms.is_set(SessionTimer::kRetry)) timers_.set(session.alarms[SessionTimer::kRetry], now);
  if (session.control() != nullptr) {
    session.better_backoff.reset();
    timers_.set(session.alarms[SessionTimer::kBetter], now);
  }
  for (PathEntry& entry : session.paths) entry.path->reconnect(now);
}

void Engine::on_path_agreed(Session& session, PathEntry& entry, Instant now) {
  ++session.paths_agreed;
  const auto inlines = [this](const PathEntry& each) {
    return each.agreed && backends_[each.backend].traits->inline_bytes_max > 0;
  };
  session.peer->moves_at_once.store(std::ranges::any_of(session.paths, inlines), std::memory_order_relaxed);
  session.fruitless.clear();
  entry.trial.begin(now, entry.carried);
  // Whichever end opened it, it came up in place of one lost path at most.
  if (!session.lost.empty() && !session.alarms.is_set(SessionTimer::kFence)) fence_later(session, now);
  if (is_better_missing(session)) return seek_better_later(session, now);
  timers_.clear(session.alarms[SessionTimer::kBetter]);
}

/// That a path was agreed upon says little: a device may break whenever it is used. Only after one that worked do
/// pauses begin anew.
void Engine::judge_trial(Session& session, PathEntry& entry, Instant now) {
  const bool worked =
      entry.agreed && entry.trial.end({.at = now, .carried = entry.carried, .was_idle = entry.errors == 0});
  if (worked) {
    session.trials_failed = 0;
    session.better_backoff.reset();
    return;
  }
  ++session.trials_failed;
  session.fruitless.resize(backends_.size(), false);
  session.fruitless[entry.backend] = true;
}

/// Longer after each path in a row that did not work, and still with time for some tries before the peer is given up.
proto::BackoffOptions Engine::pauses_before_opening(const Session& session) const {
  constexpr std::uint32_t kDoublingsMax = 16;
  constexpr int kTriesAtLeast = 8;
  proto::BackoffOptions pauses;
  const Duration grown = pauses.first * (1 << std::min(session.trials_failed, kDoublingsMax));
  pauses.first = std::max(pauses.first, std::min(grown, core_.options.peer_timeout / kTriesAtLeast));
  pauses.longest = std::max(pauses.longest, pauses.first);
  return pauses;
}

/// The path that a plan took before, unless another was agreed upon since: that may be better.
PathEntry* Engine::route_in_force(const Route& route, Session& session) {
  if (route.serial == 0 || route.chosen_among != session.paths_agreed) return nullptr;
  for (PathEntry& entry : session.paths) {
    if (entry.serial == route.serial && entry.agreed) return &entry;
  }
  return nullptr;
}

}  // namespace hawser::agent
