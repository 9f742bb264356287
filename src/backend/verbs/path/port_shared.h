#pragma once

// What the paths of one port share.
//
// Thread rule: confined to the port's lane. Lifetime: the port's, which outlives its paths.

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/events.h"
#include "backend/verbs/devices/pairing.h"
#include "backend/verbs/options.h"
#include "backend/verbs/queues/queue_pair.h"
#include "base/rng.h"

namespace hawser::backend::verbs {

struct PortShared {
  const Context& context;
  const VerbsOptions& options;
  const Pairing& pairing;
  std::vector<std::unique_ptr<NicLane>>& lanes;
  stream::EventQueue& events;
  std::uint64_t host = 0;
  base::Rng rng;
  bool attention = false;  ///< Some path's timers or queues changed: the next turn looks at all paths.
};

}  // namespace hawser::backend::verbs
