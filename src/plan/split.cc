#include "plan/split.h"

#include <algorithm>

#include "base/format.h"

namespace hawser::plan {
namespace {

/// What a chunk may hold, with zeros made into "no limit".
struct Bounds {
  std::uint64_t bytes;
  std::size_t pieces;

  explicit Bounds(const ChunkLimits& limits)
      : bytes(limits.bytes_max == 0 ? UINT64_MAX : limits.bytes_max),
        pieces(limits.pieces_max == 0 ? SIZE_MAX : limits.pieces_max) {}
  /// Chunks that a piece too large is cut into.
  std::uint64_t parts(std::uint64_t size) const { return size / bytes + (size % bytes != 0 ? 1 : 0); }
};

/// Parts that all pieces too large need together; saturates far above kChunksMax.
std::uint64_t count_parts(const Pieces& pieces, const Bounds& bounds) {
  if (pieces.bytes <= bounds.bytes) return 0;
  std::uint64_t total = 0;
  for (const Piece& piece : pieces.all.span()) {
    if (piece.size <= bounds.bytes) continue;
    if (__builtin_add_overflow(total, bounds.parts(piece.size), &total)) return UINT64_MAX;
  }
  return total;
}

/// Makes the chunks of one group after the other.
class Splitter {
 public:
  Splitter(const Bounds& bounds, ChunkList& out) : bounds_(bounds), out_(out), cut_(out.cut.data()) {}

  void take_group(std::span<const Piece> pieces, std::uint32_t group) {
    group_ = group;
    std::size_t at = 0;
    while (at < pieces.size()) {
      if (pieces[at].size > bounds_.bytes) {
        cut(pieces[at++]);
      } else {
        at += take_run(pieces.subspan(at));
      }
    }
  }
  std::size_t cut_count() const { return static_cast<std::size_t>(cut_ - out_.cut.data()); }

 private:
  /// The longest run from the front that a chunk may hold; the first piece fits for certain.
  std::size_t take_run(std::span<const Piece> pieces) {
    const std::size_t limit = std::min(pieces.size(), bounds_.pieces);
    std::uint64_t bytes = pieces[0].size;
    std::size_t count = 1;
    while (count < limit && pieces[count].size <= bounds_.bytes - bytes) bytes += pieces[count++].size;
    out_.chunks.push_back({pieces.first(count), bytes, group_});
    return count;
  }
  void cut(const Piece& piece) {
    for (std::uint64_t offset = 0; offset < piece.size;) {
      const std::uint64_t size = std::min(bounds_.bytes, piece.size - offset);
      *cut_ = {piece.local + offset, piece.remote + offset, size};
      out_.chunks.push_back({{cut_, 1}, size, group_});
      ++cut_;
      offset += size;
    }
  }

  const Bounds bounds_;
  ChunkList& out_;
  Piece* cut_;
  std::uint32_t group_ = 0;
};

/// No fewer than the chunks of uncut pieces. A chunk ends when it is full of pieces, when it and the next one's first
/// piece together are too large (so two in a row hold more than one's bytes), before a cut piece, or with its group.
std::size_t runs_max(const Pieces& pieces, const Bounds& bounds, std::uint64_t parts) {
  const std::uint64_t by_bytes = pieces.bytes / bounds.bytes * 2;
  const std::uint64_t by_pieces = pieces.all.size() / bounds.pieces;
  const std::uint64_t ends = parts + 2 * pieces.groups.size();
  return static_cast<std::size_t>(std::min<std::uint64_t>(pieces.all.size(), by_bytes + by_pieces + ends));
}

Status too_many(std::string_view call, const Pieces& pieces, const Bounds& bounds) {
  return Status(Code::kInvalid, base::format("{}: {} bytes in {} pieces need more than {} chunks of at most {} bytes",
                                             call, pieces.bytes, pieces.all.size(), kChunksMax, bounds.bytes))
      .with_advice("make several plans");
}

}  // namespace

Result<ChunkList> split(std::string_view call, const Pieces& pieces, const ChunkLimits& limits) {
  const Bounds bounds(limits);
  const std::uint64_t parts = count_parts(pieces, bounds);
  if (parts > kChunksMax || pieces.all.size() / bounds.pieces > kChunksMax) return too_many(call, pieces, bounds);
  ChunkList result;
  if (parts != 0) {
    result.cut = PieceArray(static_cast<std::size_t>(parts));
    if (result.cut.data() == nullptr)
      return Status(Code::kFailed, base::format("{}: no memory for {} chunks", call, parts));
  }
  result.chunks.reserve(static_cast<std::size_t>(parts) + std::min(runs_max(pieces, bounds, parts), kChunksMax));
  Splitter splitter(bounds, result);
  for (std::size_t g = 0; g < pieces.groups.size(); ++g) {
    const PieceGroup& group = pieces.groups[g];
    splitter.take_group(pieces.all.span().subspan(group.first, group.count), static_cast<std::uint32_t>(g));
  }
  if (result.chunks.size() > kChunksMax) return too_many(call, pieces, bounds);
  result.cut.finish(splitter.cut_count());  // All of its room: nothing moves, chunks point into it.
  return result;
}

}  // namespace hawser::plan
