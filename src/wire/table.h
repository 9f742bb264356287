#pragma once

// The shape of a range table as bytes: which region, and its ranges in the order of their indices. A strided table of
// any count takes at most 64 bytes; a list of single ranges is coded by differences.
//
// Grammar (little-endian; varint is LEB128, zigzag a signed varint):
//   table = magic:u32 "HWTB", version:u8 2, region:varint, generation:varint, mark:u64, count:varint (of ranges), run*,
//           checksum:u64 (of all before it)
//   run   = flags:u8, length:varint, range*
//   range = gap:zigzag (offset minus the end of the range before it), [size:varint], [stride:varint, count:varint]
//           flags: 1 sized (else as large as the range before it), 2 strided (else stride 0, count 1)
//   The end of a range is that of its last block.
//
// Thread rule: values and pure functions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hawser/memory.h>
#include <hawser/status.h>

namespace hawser::wire {

inline constexpr std::uint32_t kTableMagic = 0x42545748;  // "HWTB"
inline constexpr std::size_t kTableSizeMax = 64u << 20;
inline constexpr std::size_t kTableRangesMax = 1u << 22;                  ///< Strided ranges, not blocks.
inline constexpr std::uint64_t kTableBlocksMax = std::uint64_t{1} << 40;  ///< Sum of the counts.

struct TableShape {
  std::uint32_t region = 0;  ///< Index in the owner's card.
  std::uint32_t generation = 0;
  std::vector<StridedRange> ranges;
  std::uint64_t mark = 0;  ///< Made of the region's key, which it does not tell: see agent::mark_of.
};

/// kInvalid for too many ranges or blocks, a range without blocks or bytes, or one whose end passes 2^64.
Result<std::string> encode(const TableShape& table);
/// kCorrupt tells what is wrong at which byte. The caller checks that the ranges lie in the region.
Result<TableShape> decode_table(std::span<const std::byte> bytes);

}  // namespace hawser::wire
