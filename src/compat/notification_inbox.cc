#include "compat/notification_inbox.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/inner.h"
#include "agent/inner_peers.h"
#include "base/inside.h"
#include "compat/parts.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

bool NotificationInbox::may_have(const hawser::Agent& agent) const {
  return agent::inner::has_notifications(agent) || has_parts_.load(std::memory_order_acquire);
}

void NotificationInbox::take(hawser::Agent& agent, NotificationMap& into) {
  if (!may_have(agent)) return;
  const std::lock_guard lock(mutex_);
  const std::vector<const void*> gone = parts_.gone();
  while (auto one = agent.take_notification()) {
    const std::string_view name = one->peer.name();
    if (!is_marked(one->text)) {
      into[std::string(name)].push_back(std::move(one->text));
      continue;
    }
    const auto is_gone = [peer = one->peer] { return peer.state() == PeerState::kDown; };
    parts_.take({.key = core_of(one->peer).get(), .name = std::string(name), .is_gone = is_gone}, one->text, into);
  }
  parts_.forget(gone);
  has_parts_.store(!parts_.empty(), std::memory_order_release);
}

}  // namespace compat
HAWSER_NAMESPACE_END
