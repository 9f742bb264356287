#pragma once

// LinkMemory: takes back what links of sessions keep for messages, once they have kept none for a while. A burst may
// make each link of a session take megabytes, and most peers are idle most of the time.
//
// Thread rule: confined to the lane.

#include <chrono>

#include <hawser/time.h>

#include "agent/session.h"

namespace hawser::agent {

inline constexpr Duration kLinkMemoryPause = std::chrono::seconds(1);  ///< From a message to the next look.

class LinkMemory {
 public:
  explicit LinkMemory(SessionTimers& timers) : timers_(timers) {}

  /// The session may keep messages now.
  void note(Session& session, Instant now) {
    SessionAlarm& alarm = session.alarms[SessionTimer::kTrim];
    if (session.links.keeps_any() && !alarm.hook.is_set()) timers_.set(alarm, now + kLinkMemoryPause);
  }
  /// It is time (SessionTimer::kTrim). Links that keep messages are looked at again.
  void take_back(Session& session, Instant now) {
    session.links.trim();
    note(session, now);
  }

 private:
  SessionTimers& timers_;
};

}  // namespace hawser::agent
