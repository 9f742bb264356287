#pragma once

// Who takes part, numbered so that some rank is 0: rooted algorithms count from their root. Members may be some of the
// world's ranks only.

#include <cstddef>
#include <cstdint>
#include <span>

namespace hawser::schedule {

struct Members {
  std::uint32_t rank = 0;  ///< Mine, in the order of this numbering.
  std::uint32_t size = 1;
  std::uint32_t first = 0;  ///< The world's rank of number 0; where `some` is not empty, its place there.
  /// The world's ranks of those who take part, in the order of their numbers. Empty: all take part.
  std::span<const std::uint32_t> some = {};

  static Members all(std::uint32_t rank, std::uint32_t size) { return {rank, size, 0}; }
  static Members from_root(std::uint32_t rank, std::uint32_t size, std::uint32_t root) {
    return {(rank + size - root) % size, size, root};
  }
  /// Those of `ranks`, of which this one is at `place`. A view.
  static Members among(std::span<const std::uint32_t> ranks, std::size_t place) {
    return {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(ranks.size()), 0, ranks};
  }
  /// The world's rank of the one with this number, which may be too large by up to `size`.
  std::uint32_t world_rank(std::uint32_t number) const {
    const auto place = static_cast<std::uint32_t>((std::uint64_t{number} + first) % size);
    return some.empty() ? place : some[place];
  }
  /// The number so many behind or before this one's, on the circle.
  std::uint32_t number_after(std::uint32_t distance) const {
    return static_cast<std::uint32_t>((std::uint64_t{rank} + distance) % size);
  }
  std::uint32_t number_before(std::uint32_t distance) const { return number_after(size - distance); }
  /// The same as the world's ranks.
  std::uint32_t after(std::uint32_t distance) const { return world_rank(number_after(distance)); }
  std::uint32_t before(std::uint32_t distance) const { return world_rank(number_before(distance)); }
};

}  // namespace hawser::schedule
