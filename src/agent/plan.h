#pragma once

// What stands behind a Plan: pieces paired and merged, cut into chunks once, and a replaceable route.
//
// Pieces and chunks are immutable from the day the plan is made, so a chunk keeps its number whatever path carries it;
// that is what lets the target tell a chunk sent again from a new one. The route (which path, which bindings) is
// confined to the lane and replaced when paths change.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hawser/transfer.h>

#include "agent/region.h"
#include "backend/backend.h"

namespace hawser::agent {

class Core;
struct PeerCore;

struct ChunkShape {
  const backend::Piece* pieces = nullptr;
  std::uint32_t count = 0;
  std::uint32_t remote = 0;  ///< Which of PlanCore::remotes.
  std::uint64_t bytes = 0;
};

/// Which path carries the plan now. `serial` names the path for ever, so a stale route is seen by comparing.
struct Route {
  backend::Path* path = nullptr;
  std::uint64_t serial = 0;
  std::vector<backend::Binding*> bindings;  ///< One per PlanCore::remotes.
};

struct PlanCore {
  std::shared_ptr<Core> core;
  std::shared_ptr<PeerCore> peer;
  Operation operation = Operation::kWrite;
  std::uint64_t bytes = 0;
  std::uint64_t range_count = 0;
  std::vector<backend::Piece> pieces;
  std::vector<ChunkShape> chunks;
  std::vector<std::shared_ptr<LocalRegion>> locals;
  std::vector<std::shared_ptr<const RemoteRegion>> remotes;
  Route route;  ///< Under the lane's lock.
};

}  // namespace hawser::agent
