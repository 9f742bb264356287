#pragma once

// SessionTimers: when something is to be done about a session though nothing comes. A session that has nothing to be
// done costs the others nothing.
//
// Thread rule: confined to the lane. Lifetime: a session's alarms are cleared before it goes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <hawser/time.h>

#include "base/timer_heap.h"

namespace hawser::agent {

struct Session;

enum class SessionTimer : std::uint8_t {
  kConnect,  ///< No path was agreed upon within peer_timeout.
  kRetry,    ///< The pause before the next attempt is over.
  kBetter,   ///< A backend that comes before those of the paths may be tried again.
  kLetGo,    ///< Handles of closed regions may be gone.
  kTrim,     ///< Links that kept messages may keep none now.
  kFence,    ///< A path that was lost with writes under way needs another in its place.
  kCount,
};

struct SessionAlarm {
  Session* session = nullptr;
  SessionTimer which = SessionTimer::kConnect;
  base::TimerHook hook;
};

/// One of each kind.
class SessionAlarms {
 public:
  explicit SessionAlarms(Session& session) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      all_[i].session = &session;
      all_[i].which = static_cast<SessionTimer>(i);
    }
  }
  SessionAlarm& operator[](SessionTimer which) { return all_[static_cast<std::size_t>(which)]; }
  /// Instant::max() when it is not set.
  Instant at(SessionTimer which) const { return all_[static_cast<std::size_t>(which)].hook.at(); }
  bool is_set(SessionTimer which) const { return all_[static_cast<std::size_t>(which)].hook.is_set(); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

 private:
  std::array<SessionAlarm, static_cast<std::size_t>(SessionTimer::kCount)> all_;
};

using SessionTimers = base::TimerHeap<SessionAlarm, &SessionAlarm::hook>;

}  // namespace hawser::agent
