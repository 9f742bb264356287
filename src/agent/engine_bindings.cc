// Bindings of regions that are gone: when the paths forget them.

#include <algorithm>

#include "agent/core.h"
#include "agent/engine.h"

namespace hawser::agent {
namespace {

/// Between two looks whether the last handle of a closed region is gone.
constexpr Duration kLetGoPause = std::chrono::seconds(1);

bool is_named(const CardStore* card, const BoundRegions::Id& id) {
  const wire::CardRegion* const region = card == nullptr ? nullptr : card->find(id.first);
  return region != nullptr && region->generation == id.second;
}

}  // namespace

std::size_t Engine::let_go(Session& session, Instant now) {
  std::size_t work = 0;
  session.bound.let_go([&](const BoundRegions::Id& id) {
    for (PathEntry& entry : session.paths) entry.path->unbind(id.first, id.second);
    ++work;
  });
  // Regions come and go many times in a second: an alarm that is set stays, and may find nothing to do.
  SessionAlarm& alarm = session.alarms[SessionTimer::kLetGo];
  if (session.bound.is_waiting() && !alarm.hook.is_set()) timers_.set(alarm, now + kLetGoPause);
  return work;
}

void Engine::on_card_loaded(PeerCore& peer, const CardStore::Change& change, Instant now) {
  if (peer.is_self || peer.session == nullptr || closing_) return;  // Its own card is never loaded.
  BoundRegions& bound = peer.session->bound;
  for (const CardStore::Id& id : change.gone) bound.condemn(id);
  // Regions that no card named, only a handle, are found by a look at all: each card pays for a part of one.
  if (bound.is_look_due(change.is_whole ? bound.size() : 1 + change.gone.size())) {
    const base::MutexLock lock(peer.mutex);
    const CardStore* const card = peer.card.get();
    bound.condemn_unless([card](const BoundRegions::Id& id) { return is_named(card, id); });
  }
  (void)let_go(*peer.session, now);
  set_unreached(*peer.session, Status());                                // Its addresses may be others now.
  if (peer.session->control_serial != 0) follow_card(*peer.session, 0);  // Else its Welcome does.
  // What a path could not reach may have keys now: plans choose anew.
  bool any = false;
  for (PathEntry& entry : peer.session->paths) any = entry.refused.forget_all() || any;
  if (any) ++peer.session->paths_agreed;
}

void Engine::on_own_region_closed(std::uint32_t index, std::uint32_t generation, Instant now) {
  Session* const session = core_.self()->session.get();
  if (session == nullptr || closing_) return;
  session->bound.condemn({index, generation});
  (void)let_go(*session, now);
}

}  // namespace hawser::agent
