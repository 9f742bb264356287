#pragma once

// RegionBindings: when paths forget regions that are gone. See agent/bound_regions.h for what is known of them.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <hawser/time.h>

#include "agent/card_store.h"
#include "agent/engine/session_table.h"
#include "agent/peer_core.h"
#include "agent/session.h"

namespace hawser::agent {

class RegionBindings {
 public:
  RegionBindings(const SessionTable& sessions, SessionTimers& timers) : sessions_(sessions), timers_(timers) {}

  /// A path of the session was told of the region.
  void add(Session& session, const std::shared_ptr<const RemoteRegion>& region, Instant now);
  /// A card of the peer was taken in: what is bound of regions that it names no more may go, and what a path could not
  /// reach may have keys now.
  void on_card(PeerCore& peer, const CardStore::Change& change, Instant now);
  /// The agent closed a region of its own, which it may have bound itself.
  void on_own_region_closed(PeerCore& self, std::uint32_t index, std::uint32_t generation, Instant now);
  /// It is time (SessionTimer::kLetGo): handles of closed regions may be gone. Returns how much was let go of.
  std::size_t let_go(Session& session, Instant now);

 private:
  /// Lets go of those alone that are condemned, so that a card costs the same however many came by grants.
  void let_go_condemned(Session& session, Instant now);
  void look_again(Session& session, Instant now);

  const SessionTable& sessions_;
  SessionTimers& timers_;
};

}  // namespace hawser::agent
