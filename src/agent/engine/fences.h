#pragma once

// Fences: a path can be lost here while the peer still reads what was sent by it. Where another path is up, nothing
// must go by that before the lost one is dead at the peer: its late bytes would land on newer ones. So a path is opened
// in its place, and while that is not agreed upon nothing is offered.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/path_opener.h"
#include "agent/engine/ports.h"
#include "agent/engine/reach.h"
#include "agent/session.h"
#include "base/rng.h"

namespace hawser::agent {

class Fences {
 public:
  /// What they work with; all of it outlives them.
  struct Uses {
    const Ports& ports;
    const Reach& reach;
    PathOpener& opener;
    SessionTimers& timers;
    base::Rng& rng;
    Duration peer_timeout;
  };
  explicit Fences(const Uses& uses) : uses_(uses) {}

  /// A chunk ended. Where it was a write that may still land, its path has to be fenced once it is lost.
  void note_end(PathEntry* entry, const Slot& slot, const backend::PortEvent& event) const;
  /// The path was up, and is lost.
  void on_lost(Session& session, const PathEntry& entry, Instant now) const;
  /// Paths are lost, and another one is there: they are fenced soon. Nothing where that is under way.
  void fence_soon(Session& session, Instant now);
  /// It is time (SessionTimer::kFence): opens paths in place of the lost ones. An error: the peer is to be given up.
  Status fence(Session& session, Instant now);
  /// That session of a path is dead at the peer.
  void on_fenced(Session& session, const base::Id128& lost);
  /// All paths of the session go.
  void forget(Session& session);

 private:
  std::vector<std::size_t> order(Session& session, LostPath& lost) const;
  void later(Session& session, Instant now);

  const Uses uses_;
};

}  // namespace hawser::agent
