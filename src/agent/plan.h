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

#include "agent/refusals.h"
#include "agent/region.h"
#include "backend/backend.h"
#include "backend/queue_pair_source.h"
#include "base/small_vector.h"
#include "plan/pieces.h"
#include "plan/row_table.h"
#include "plan/split.h"

namespace hawser::agent {

class Core;
struct PeerCore;

/// Those that one plan touches. Mostly one of each.
using LocalRegions = base::SmallVector<std::shared_ptr<LocalRegion>, 1>;
using RemoteRegions = base::SmallVector<std::shared_ptr<const RemoteRegion>, 1>;

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
  Route route = {};  ///< Under the lane's lock.

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

/// One side of a plan over prepared rows: rows name their regions by their place in `regions`. Offsets of the local
/// side are addresses.
template <typename Region>
struct RowSide {
  const plan::RowTable& rows;
  std::span<const std::shared_ptr<Region>> regions;
  std::span<const std::int32_t> index;
};

/// As Agent::plan_write and plan_read, from rows. For layers above that keep lists of several regions.
Result<Plan> plan_rows(std::string_view call, const std::shared_ptr<Core>& core, const Peer& peer, Operation operation,
                       const RowSide<LocalRegion>& local, const RowSide<const RemoteRegion>& remote);

/// Pieces that were made already, and the regions they lie in. Group g lies in remote region `remotes[g]`.
struct MadePieces {
  plan::Pieces pieces;  ///< Within their regions.
  LocalRegions locals;
  RemoteRegions remotes;
};

/// As plan_rows, from pieces.
Result<Plan> plan_pieces(std::string_view call, const std::shared_ptr<Core>& core, const Peer& peer,
                         Operation operation, MadePieces&& made);

/// What `explain` would say of the path that it chooses, in numbers. kUnsupported or kDisconnected when there is none.
struct RouteCost {
  std::string backend;
  double predicted_ns = 0;
  bool measured = false;  ///< The prediction rests on measurements.
};
Result<RouteCost> route_cost(const PlanCore& plan);

/// One open backend, and why it does not lead to a peer as far as was found out; good: it does, or was not tried yet.
struct Way {
  std::string backend;
  Status why;
};
std::vector<Way> ways_to(Core& core, PeerCore& peer);
/// As ways_to, for a caller that holds the lane's lock.
std::vector<Way> ways_of(Core& core, PeerCore& peer);

/// Traits::moves_in_submit of the path that carries the plan now. False where none is up.
bool moves_in_submit(PlanCore& plan);

/// The queue pair that would carry `piece`, of the plan's first remote region, now. kUnsupported where the plan's path
/// has none, kDisconnected where no path is up.
Result<backend::QueuePairView> queue_pair_of(PlanCore& plan, const backend::Piece& piece);
/// Those of the path that carries the plan now; none where no path is up, or it has none.
std::vector<QueuePairCounters> queue_pairs_of(PlanCore& plan);

}  // namespace hawser::agent
