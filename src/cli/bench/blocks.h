#pragma once

// Which blocks of an arena a row moves, known to both processes by a few numbers; patterns to fill them with, and sums
// to check them by.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cli/json_out.h"

namespace hawser::cli::bench {

/// `count` blocks of an arena: in order, or (seed != 0) places `first`... of the arena's blocks in a shuffled order.
struct BlockList {
  std::uint64_t block_bytes = 0;
  std::uint64_t arena_blocks = 0;
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  std::uint64_t seed = 0;

  std::vector<std::uint32_t> indices() const;
  std::uint64_t bytes() const { return block_bytes * count; }
};
Json to_json(const BlockList& list);
BlockList block_list_from(const Json& json);

/// Words that depend on place and seed.
void fill(std::span<std::byte> bytes, std::uint64_t seed);
/// Over the blocks in the list's order, so equal sums mean that each block came to its place.
std::uint64_t sum_of(std::span<const std::byte> arena, const BlockList& list);

/// Reads all of it, as a consumer would; the result keeps the compiler from leaving it out.
std::uint64_t read_all(std::span<const std::byte> bytes);

}  // namespace hawser::cli::bench
