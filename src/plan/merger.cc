#include "plan/merger.h"

#include <algorithm>

namespace hawser::plan {

std::vector<Merger> mergers_of(Pieces& pieces) {
  std::vector<Merger> mergers;
  mergers.reserve(pieces.groups.size());
  std::size_t at = 0;
  for (const PieceGroup& group : pieces.groups) {
    mergers.emplace_back(pieces.all.data() + at);
    at += group.count;
  }
  return mergers;
}

void close_gaps(std::span<const Merger> mergers, Pieces& pieces) {
  Piece* end = pieces.all.data();
  for (std::size_t g = 0; g < mergers.size(); ++g) {
    const Merger& merger = mergers[g];
    pieces.groups[g].first = static_cast<std::size_t>(end - pieces.all.data());
    pieces.groups[g].count = merger.count();
    end = merger.begin() == end ? merger.end() : std::copy(merger.begin(), merger.end(), end);
  }
  pieces.all.finish(static_cast<std::size_t>(end - pieces.all.data()));
}

}  // namespace hawser::plan
