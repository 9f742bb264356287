#pragma once

// The inner door, plans: how layers of this library make plans of what they keep themselves, and what they ask of one.
//
// Thread rule: thread-safe, without the lane's lock.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/agent.h>
#include <hawser/transfer.h>

#include "agent/region.h"
#include "backend/queue_pair_source.h"
#include "base/small_vector.h"
#include "plan/pieces.h"
#include "plan/row_table.h"

namespace hawser::agent {

/// Those that one plan touches. Mostly one of each.
using LocalRegions = base::SmallVector<std::shared_ptr<LocalRegion>, 1>;
using RemoteRegions = base::SmallVector<std::shared_ptr<const RemoteRegion>, 1>;

namespace inner {

/// One side of a plan over prepared rows: rows name their regions by their place in `regions`. Offsets of the local
/// side are addresses.
template <typename Region>
struct RowSide {
  const plan::RowTable& rows;
  std::span<const std::shared_ptr<Region>> regions;
  std::span<const std::int32_t> index;
};

/// As Agent::plan_write and plan_read, from rows.
Result<Plan> plan_rows(std::string_view call, const Agent& agent, const Peer& peer, Operation operation,
                       const RowSide<LocalRegion>& local, const RowSide<const RemoteRegion>& remote);

/// Pieces that were made already, and the regions they lie in. Group g lies in remote region `remotes[g]`.
struct MadePieces {
  plan::Pieces pieces;  ///< Within their regions.
  LocalRegions locals;
  RemoteRegions remotes;
};

/// As plan_rows, from pieces.
Result<Plan> plan_pieces(std::string_view call, const Agent& agent, const Peer& peer, Operation operation,
                         MadePieces&& made);

/// What `explain` would say of the path that it chooses, in numbers. kUnsupported or kDisconnected when there is none.
struct RouteCost {
  std::string backend;
  double predicted_ns = 0;
  bool measured = false;  ///< The prediction rests on measurements.
};
Result<RouteCost> route_cost(const Plan& plan);

/// Traits::moves_in_submit of the path that carries the plan now. False where none is up.
bool moves_in_submit(const Plan& plan);

/// The queue pair that would carry `piece`, of the plan's first remote region, now. kUnsupported where the plan's path
/// has none, kDisconnected where no path is up.
Result<backend::QueuePairView> queue_pair_of(const Plan& plan, const backend::Piece& piece);
/// Those of the path that carries the plan now; none where no path is up, or it has none.
std::vector<QueuePairCounters> queue_pairs_of(const Plan& plan);

}  // namespace inner
}  // namespace hawser::agent
