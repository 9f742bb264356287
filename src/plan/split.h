#pragma once

// From pieces to chunks: what a path takes at a time. All chunks of a plan are computed when its route is chosen, so
// submitting it costs nothing per chunk.
//
// A chunk is a run of pieces of one remote region. A piece larger than the bound is cut; the parts are stored beside
// the plan's own pieces, each a chunk of its own.
//
// Thread rule: pure; a ChunkList is constant. Lifetime: chunks point into the Pieces they were made from.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <hawser/status.h>

#include "backend/backend.h"
#include "base/small_vector.h"
#include "plan/pieces.h"

namespace hawser::plan {

/// Chunks of one plan: 16 TiB in chunks of 1 MiB. Their number also has to fit into Chunk.index.
inline constexpr std::size_t kChunksMax = std::size_t{1} << 24;

struct ChunkSpan {
  std::span<const Piece> pieces;
  std::uint64_t bytes = 0;
  std::uint32_t group = 0;  ///< Index into Pieces.groups.
};

struct ChunkLimits {
  std::uint64_t bytes_max = 0;   ///< 0: no limit.
  std::uint32_t pieces_max = 0;  ///< 0: no limit.

  static ChunkLimits of(const backend::Traits& traits) { return {traits.chunk_bytes_max, traits.chunk_pieces_max}; }
};

struct ChunkList {
  base::SmallVector<ChunkSpan, 1> chunks;
  PieceArray cut;  ///< Parts of pieces that were too large.
};

/// Errors: kInvalid when the plan needs more than kChunksMax chunks.
Result<ChunkList> split(std::string_view call, const Pieces& pieces, const ChunkLimits& limits);

}  // namespace hawser::plan
