#include "agent/engine/region_bindings.h"

#include "agent/bound_regions.h"

namespace hawser::agent {
namespace {

/// Between two looks whether the last handle of a closed region is gone.
constexpr Duration kLetGoPause = std::chrono::seconds(1);

bool is_named(const CardStore* card, const BoundRegions::Id& id) {
  const wire::CardRegion* const region = card == nullptr ? nullptr : card->find(id.first);
  return region != nullptr && region->generation == id.second;
}

void unbind(Session& session, const BoundRegions::Id& id) {
  for (PathEntry& entry : session.paths) entry.path->unbind(id.first, id.second);
}

}  // namespace

std::size_t RegionBindings::let_go(Session& session, Instant now) {
  std::size_t work = 0;
  const auto forget = [&](const BoundRegions::Id& id) {
    unbind(session, id);
    ++work;
  };
  session.bound.let_go(forget);
  session.bound.let_go_granted(forget);
  look_again(session, now);
  return work;
}

void RegionBindings::let_go_condemned(Session& session, Instant now) {
  session.bound.let_go([&](const BoundRegions::Id& id) { unbind(session, id); });
  look_again(session, now);
}

void RegionBindings::add(Session& session, const std::shared_ptr<const RemoteRegion>& region, Instant now) {
  session.bound.add(region);
  look_again(session, now);
}

void RegionBindings::look_again(Session& session, Instant now) {
  // Regions come and go many times in a second: an alarm that is set stays, and may find nothing to do.
  SessionAlarm& alarm = session.alarms[SessionTimer::kLetGo];
  if (session.bound.is_waiting() && !alarm.hook.is_set()) timers_.set(alarm, now + kLetGoPause);
}

void RegionBindings::on_card(PeerCore& peer, const CardStore::Change& change, Instant now) {
  Session& session = *peer.session();
  for (const CardStore::Id& id : change.gone) session.bound.condemn(id);
  // Regions that no card named, only a handle, are found by a look at all: each card pays for a part of one.
  if (session.bound.is_look_due(change.is_whole ? session.bound.size() : 1 + change.gone.size())) {
    const base::MutexLock lock(peer.use().mutex);
    const CardStore* const card = peer.use().card.get();
    session.bound.condemn_unless([card](const BoundRegions::Id& id) { return is_named(card, id); });
  }
  let_go_condemned(session, now);
  bool any = false;
  for (PathEntry& entry : session.paths) any = entry.refused.forget_all() || any;
  if (any) ++session.paths_agreed;  // Plans choose anew.
}

void RegionBindings::on_own_region_closed(PeerCore& self, std::uint32_t index, std::uint32_t generation, Instant now) {
  Session* const session = self.session();
  if (session == nullptr || sessions_.is_closing()) return;
  session->bound.condemn({index, generation});
  let_go_condemned(*session, now);
}

}  // namespace hawser::agent
