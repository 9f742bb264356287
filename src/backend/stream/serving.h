#pragma once

// Serving: what the two halves of Target, which land writes and answer reads, have in common.
//
// Thread rule: one thread. Lifetime: Target owns what it refers to.

#include <cstdint>

#include "backend/stream/ack_queue.h"
#include "backend/stream/bound_regions.h"
#include "backend/stream/desk_share.h"
#include "backend/stream/peer_charges.h"

namespace hawser::backend::stream {

struct Serving {
  const BoundRegions& regions;
  PeerCharges& charges;
  AckQueue& acks;
  DeskShare& desk;
};

}  // namespace hawser::backend::stream
