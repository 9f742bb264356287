#pragma once

// Graveyard: how sessions go, so that joins and leaves leave nothing behind. A handle keeps its peer's name and state.
//
// Thread rule: confined to the lane.

#include "agent/engine/path_index.h"
#include "agent/engine/service_table.h"
#include "agent/engine/session_table.h"
#include "agent/engine/surroundings.h"

namespace hawser::agent {

class Graveyard {
 public:
  /// What it works with; all of it outlives it.
  struct Uses {
    SessionTable& sessions;
    const ServiceTable& services;
    PathIndex& paths;
    SessionTimers& timers;
    PeerRegister& peers;
  };
  explicit Graveyard(const Uses& uses) : uses_(uses) {}

  /// Destroys sessions that are over and of which nothing is left, and has their peers forgotten.
  void bury();
  /// Destroys all. No port is left.
  void bury_all();

 private:
  void destroy(Session& session);

  const Uses uses_;
};

}  // namespace hawser::agent
