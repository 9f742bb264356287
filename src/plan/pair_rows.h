#pragma once

// From two tables of rows and an index array for each to pieces, as pair_tables does for tables of one region.
//
// Thread rule: pure functions. Lifetime: pieces point into the caller's local regions.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/pieces.h"
#include "plan/row_table.h"

namespace hawser::plan {

/// The pieces, and which regions they touch: `locals` and `remotes` are the caller's numbers in order of first use, and
/// group g lies in region `remotes[g]`.
struct RowPieces {
  Pieces pieces;
  std::vector<std::uint32_t> locals;
  std::vector<std::uint32_t> remotes;
};

/// Block `local_index[i]` of `local`, whose offsets are addresses, is paired with block `remote_index[i]` of `remote`.
/// Region numbers are below the given counts. Errors: kInvalid, naming the first wrong pair.
Result<RowPieces> pair_rows(std::string_view call, const RowTable& local, std::uint32_t local_regions,
                            std::span<const std::int32_t> local_index, const RowTable& remote,
                            std::uint32_t remote_regions, std::span<const std::int32_t> remote_index);

/// Why it refuses the pair at position `at`: an index, or lengths that differ. For callers that look at pairs before.
Status wrong_pair(std::string_view call, const RowTable& local, std::span<const std::int32_t> local_index,
                  const RowTable& remote, std::span<const std::int32_t> remote_index, std::size_t at);

}  // namespace hawser::plan
