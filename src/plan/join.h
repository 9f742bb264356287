#pragma once

// Pieces of several plans made those of one.
//
// Thread rule: pure functions. Lifetime: pieces point into the caller's local regions.

#include <cstdint>
#include <span>
#include <string_view>

#include "plan/pieces.h"

namespace hawser::plan {

/// Pieces of one plan. `regions[r]` is the joined plan's number of what its groups call region r.
struct JoinPart {
  const Pieces* pieces = nullptr;
  std::span<const std::uint32_t> regions;
};

/// All pieces in the order of the parts, within groups in order of first use. Pieces that have become neighbours on
/// both sides are merged. `region_count` is above every number in `regions`. Errors: kInvalid for no parts, for more
/// than kPairsMax pieces or 2^64 bytes; kFailed for no memory.
Result<Pieces> join_pieces(std::string_view call, std::span<const JoinPart> parts, std::uint32_t region_count);

}  // namespace hawser::plan
