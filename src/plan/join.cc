#include "plan/join.h"

#include <vector>

#include "base/format.h"
#include "base/try.h"
#include "plan/merger.h"

namespace hawser::plan {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

Status too_large(std::string_view call, std::string_view what) {
  return Status(Code::kInvalid, base::format("{}: the plans have {} in all", call, what))
      .with_advice("make several groups");
}

/// What all parts come to, before anything merges.
struct Sum {
  PieceGroups groups;
  std::vector<std::uint32_t> group_of;  ///< By region.
  std::uint64_t pieces = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pairs = 0;

  Status add(std::string_view call, const JoinPart& part) {
    pieces += part.pieces->all.size();
    pairs += part.pieces->pair_count;
    if (pieces > kPairsMax) return too_large(call, base::format("more than {} pieces", kPairsMax));
    if (__builtin_add_overflow(bytes, part.pieces->bytes, &bytes)) return too_large(call, "2^64 bytes or more");
    for (const PieceGroup& from : part.pieces->groups) {
      PieceGroup& group = groups[place_of(part.regions[from.region])];
      group.count += from.count;
      group.bytes += from.bytes;
    }
    return {};
  }
  std::uint32_t place_of(std::uint32_t region) {
    if (group_of[region] == kNone) {
      group_of[region] = static_cast<std::uint32_t>(groups.size());
      groups.push_back({.region = region, .first = 0, .count = 0, .bytes = 0});
    }
    return group_of[region];
  }
};

void fill(std::span<const JoinPart> parts, const Sum& sum, Pieces& out) {
  std::vector<Merger> mergers = mergers_of(out);
  for (const JoinPart& part : parts) {
    for (const PieceGroup& from : part.pieces->groups) {
      Merger& merger = mergers[sum.group_of[part.regions[from.region]]];
      for (const Piece& piece : part.pieces->all.span().subspan(from.first, from.count)) {
        merger.add(piece.local, piece.remote, piece.size);
      }
    }
  }
  close_gaps(mergers, out);
}

}  // namespace

Result<Pieces> join_pieces(std::string_view call, std::span<const JoinPart> parts, std::uint32_t region_count) {
  Sum sum;
  sum.group_of.assign(region_count, kNone);
  for (const JoinPart& part : parts) HAWSER_TRY(sum.add(call, part));
  if (sum.pieces == 0) return Status(Code::kInvalid, base::format("{}: there are no plans", call));
  Pieces joined;
  joined.all = PieceArray(static_cast<std::size_t>(sum.pieces));
  if (joined.all.data() == nullptr) {
    return Status(Code::kFailed, base::format("{}: no memory for {} pieces", call, sum.pieces))
        .with_advice("make smaller groups");
  }
  joined.groups = std::move(sum.groups);
  joined.bytes = sum.bytes;
  joined.pair_count = sum.pairs;
  fill(parts, sum, joined);
  return joined;
}

}  // namespace hawser::plan
