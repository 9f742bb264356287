#pragma once

// Shared: what the backend of shm lends to its port, and that to its members.
//
// Thread rule: references to what has rules of its own. Lifetime: the backend outlives its port.

#include "backend/backend.h"
#include "backend/shm/control.h"
#include "backend/shm/fork_list.h"
#include "backend/shm/gate.h"
#include "backend/shm/options.h"
#include "backend/shm/place.h"
#include "base/id128.h"

namespace hawser::backend::shm {

struct Shared {
  const Context& context;
  const Options& options;
  ForkList& forks;
  Gates& gates;
  Place& place;
  const Probe& probe;
  const base::Id128& boot;
};

}  // namespace hawser::backend::shm
