#pragma once

// NotificationInbox: takes an agent's notifications for its client, by the sender's name and in the order in which each
// sender sent them. What came in parts is put together.
//
// Thread rule: thread-safe. Lifetime: the logger outlives it.

#include <atomic>
#include <mutex>

#include <hawser/agent.h>
#include <hawser/compat/agent.h>

#include "base/log.h"
#include "compat/incoming_parts.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class NotificationInbox {
 public:
  explicit NotificationInbox(const base::Logger& log) : parts_(log) {}

  /// Cheap. False: `take` would find nothing.
  bool may_have(const hawser::Agent& agent) const;
  /// All that are there.
  void take(hawser::Agent& agent, NotificationMap& into);

 private:
  std::mutex mutex_;  ///< They stay in order.
  IncomingParts parts_;
  std::atomic<bool> has_parts_{false};
};

}  // namespace compat
HAWSER_NAMESPACE_END
