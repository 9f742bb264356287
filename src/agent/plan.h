#pragma once

// What stands behind a Plan: pieces paired and merged, cut into chunks once, and a replaceable route.
//
// Pieces and chunks are immutable from the day the plan is made, so a chunk keeps its number whatever path carries it;
// that is what lets the target tell a chunk sent again from a new one. The route (which path, which bindings) is
// confined to the lane and replaced when paths change.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hawser/transfer.h>

#include "agent/inner_peers.h"
#include "agent/inner_plans.h"
#include "agent/lane_access.h"
#include "agent/refusals.h"
#include "agent/region.h"
#include "backend/backend.h"
#include "base/small_vector.h"
#include "plan/pieces.h"
#include "plan/split.h"

namespace hawser::agent {

class Core;
struct PeerCore;

/// Which path carries the plan now. `serial` names the path for ever, so a stale route is seen by comparing.
struct Route {
  backend::Path* path = nullptr;
  std::uint64_t serial = 0;
  std::uint64_t chosen_among = 0;                    ///< Session::paths_agreed when it was chosen.
  base::SmallVector<backend::Binding*, 2> bindings;  ///< One per PlanCore::remotes.
};

struct PlanCore {
  std::shared_ptr<Core> core;
  std::shared_ptr<PeerCore> peer;
  Operation operation = Operation::kWrite;
  plan::Pieces pieces;  ///< Its groups' `region` is a place in `remotes`.
  plan::ChunkList chunks;
  LocalRegions locals;
  RemoteRegions remotes;
  Route route = {};            ///< Under the lane's lock.
  bool has_grants = false;     ///< Some of `remotes` came by grants,
  bool is_single_use = false;  ///< and some of those are for one transfer.

  std::uint32_t chunk_count() const { return static_cast<std::uint32_t>(chunks.chunks.size()); }
  const RemoteRegion& remote_of(std::uint32_t chunk) const {
    return *remotes[pieces.groups[chunks.chunks[chunk].group].region];
  }
  bool touches(std::uint32_t chunk, const LocalRegion& local) const;
  /// Local regions that the chunk touches, in the order of `locals`.
  std::vector<std::shared_ptr<LocalRegion>> locals_of(std::uint32_t chunk) const;
  /// Why a path with these refusals cannot carry it; null: they say nothing against it.
  const Refusals::Refusal* refused_by(const Refusals& refusals) const;

 private:
  bool joins(const Refusals::Refusal& refusal) const;
  bool has_chunk_between(const Refusals::Refusal& refusal) const;
  /// Whose regions it has and does not join, so that many ranges are looked through once. Under the lane's lock.
  mutable std::vector<std::pair<Refusals::Id, std::vector<Refusals::Id>>> apart_;
};

/// As inner::plan_pieces.
Result<Plan> pieces_plan(std::string_view call, const std::shared_ptr<Core>& core, const Peer& peer,
                         Operation operation, inner::MadePieces&& made);
/// As inner::ways_to, for a caller that holds the lane's lock.
std::vector<inner::Way> ways_of(Core& core, PeerCore& peer) HAWSER_REQUIRES(in_lane);

}  // namespace hawser::agent
