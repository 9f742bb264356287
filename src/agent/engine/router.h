#pragma once

// Router: the path that a plan takes: the best that is agreed upon and can carry all of its regions. Binds them there.
//
// Thread rule: confined to the lane.

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/connector.h"
#include "agent/engine/ports.h"
#include "agent/engine/reach.h"
#include "agent/engine/region_bindings.h"
#include "agent/plan.h"
#include "agent/session.h"

namespace hawser::agent {

class Router {
 public:
  Router(Ports& ports, const Reach& reach, Connector& connector, RegionBindings& bindings, const Clock& clock)
      : ports_(ports), reach_(reach), connector_(connector), bindings_(bindings), clock_(clock) {}

  /// The path that the plan would take now. Null: `why` gets the reason, or stays as it is while one is on its way.
  PathEntry* route(PlanCore& plan, Session& session, Status* why);
  /// The path that it took before, unless another was agreed upon since: that may be better.
  static PathEntry* in_force(const Route& route, Session& session) {
    if (route.serial == 0 || route.chosen_among != session.paths_agreed) return nullptr;
    PathEntry* const entry = session.find(route.serial);
    return entry != nullptr && entry->agreed ? entry : nullptr;
  }
  /// The path cannot carry this chunk: what it is between is refused together, and named.
  static void refuse_chunk(PathEntry& entry, const PlanCore& plan, std::uint32_t chunk, const Status& why);

 private:
  PathEntry* best_of(PlanCore& plan, Session& session) const;
  Result<bool> without_path(PlanCore& plan, Session& session);
  Status cannot_carry(const Session& session, const PlanCore& plan);
  /// False: a region is refused there, so another path is to be taken. An error is final.
  Result<bool> bind_all(PlanCore& plan, Session& session, PathEntry& entry);

  Ports& ports_;
  const Reach& reach_;
  Connector& connector_;
  RegionBindings& bindings_;
  const Clock& clock_;
};

}  // namespace hawser::agent
