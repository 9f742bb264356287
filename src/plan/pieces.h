#pragma once

// From what a user names (tables and indices, or lists of ranges) to pieces: pairs checked, neighbours that are
// contiguous on both sides merged, grouped by remote region.
//
// Thread rule: pure functions. Lifetime: pieces point into the caller's local regions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <hawser/status.h>

#include "base/small_vector.h"
#include "plan/piece_array.h"
#include "plan/table_shape.h"

namespace hawser::plan {

/// Pairs in one plan: its pieces then take up to 1.5 GiB.
inline constexpr std::size_t kPairsMax = std::size_t{1} << 26;

/// All pieces that lie in one remote region; they stand together in the array.
struct PieceGroup {
  std::uint32_t region = 0;  ///< Number that the caller gave the remote region.
  std::size_t first = 0;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
};

/// Mostly one.
using PieceGroups = base::SmallVector<PieceGroup, 1>;

struct Pieces {
  PieceArray all;
  PieceGroups groups;  ///< Never empty in a good result; no group is.
  std::uint64_t bytes = 0;
  std::uint64_t pair_count = 0;  ///< As given, before merging.
};

/// One range of a list: in local memory at `base`, or in remote region number `region`.
struct LocalPart {
  std::byte* base = nullptr;
  std::uint64_t region_size = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
struct RemotePart {
  std::uint32_t region = 0;  ///< Below `region_count`.
  std::uint64_t region_size = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// As many on each side, at least one, at most kPairsMax. `what` names them ("indices").
Status check_pair_counts(std::string_view call, std::string_view what, std::size_t local, std::size_t remote);

/// Block `local_index[i]` of `local` is paired with block `remote_index[i]` of `remote`. One group, region 0.
/// `call` is named in errors ("plan_write"). Errors: kInvalid, naming the first wrong pair, its values and the remedy.
Result<Pieces> pair_tables(std::string_view call, const TableShape& local, std::span<const std::uint32_t> local_index,
                           const TableShape& remote, std::span<const std::uint32_t> remote_index);

/// local[i] is paired with remote[i]. Groups stand in order of first use; within one, pieces keep the given order.
Result<Pieces> pair_parts(std::string_view call, std::span<const LocalPart> local, std::span<const RemotePart> remote,
                          std::uint32_t region_count);

}  // namespace hawser::plan
