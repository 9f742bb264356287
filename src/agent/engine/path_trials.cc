#include "agent/engine/path_trials.h"

#include <algorithm>
#include <cstdint>

namespace hawser::agent {

void judge_trial(Session& session, PathEntry& entry, std::size_t backends, Instant now) {
  const bool worked =
      entry.agreed && entry.trial.end({.at = now, .carried = entry.carried, .was_idle = entry.errors == 0});
  if (worked) {
    session.trials_failed = 0;
    session.better_backoff.reset();
    return;
  }
  ++session.trials_failed;
  session.fruitless.resize(backends, false);
  session.fruitless[entry.backend] = true;
}

proto::BackoffOptions pauses_before_opening(const Session& session, Duration peer_timeout) {
  constexpr std::uint32_t kDoublingsMax = 16;
  constexpr int kTriesAtLeast = 8;
  proto::BackoffOptions pauses;
  const Duration grown = pauses.first * (1 << std::min(session.trials_failed, kDoublingsMax));
  pauses.first = std::max(pauses.first, std::min(grown, peer_timeout / kTriesAtLeast));
  pauses.longest = std::max(pauses.longest, pauses.first);
  return pauses;
}

}  // namespace hawser::agent
