#pragma once

// TableShape: where the blocks of a range table lie. Checked once, then any block is found by its index: at once when
// the table is one strided range or a list of single ranges, by a short search when several strided ranges are mixed.
//
// Thread rule: immutable after `make`. Lifetime: holds a copy of the ranges; `base` is the caller's memory, never read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <hawser/memory.h>
#include <hawser/status.h>

namespace hawser::plan {

/// A list of ranges that a user gives; more than that is a mistake or an attack (a table's bytes may come from a peer).
inline constexpr std::size_t kTableEntriesMax = std::size_t{1} << 26;

/// One contiguous part of a region.
struct Block {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

class TableShape {
 public:
  TableShape() = default;
  /// `what` names the table in errors ("table of region \"kv\""). `base` is null for a remote region. Errors: kInvalid
  /// for no ranges, an empty range, or one that leaves the region.
  static Result<TableShape> make(std::string_view what, std::byte* base, std::uint64_t region_size,
                                 std::span<const StridedRange> ranges);
  /// Blocks of `block_bytes` back to back over the whole region; a rest that is no whole block is left out.
  static Result<TableShape> whole_blocks(std::string_view what, std::byte* base, std::uint64_t region_size,
                                         std::uint64_t block_bytes);

  std::byte* base() const { return base_; }
  std::uint64_t region_size() const { return region_size_; }
  /// Number of blocks; an index must be below it.
  std::uint64_t count() const { return count_; }
  /// `index` < count().
  Block at(std::uint64_t index) const;
  /// Of every block; 0 when they differ.
  std::uint64_t uniform_size() const { return uniform_size_; }

  /// The ranges that describe the table, for sending it. May be fewer than were given: a regular list becomes one.
  std::size_t entry_count() const { return kind_ == Kind::kList ? list_.size() : entries_.size(); }
  StridedRange entry(std::size_t number) const;

 private:
  friend struct ShapeLookup;
  enum class Kind : std::uint8_t {
    kStrided,  ///< entries_ holds one.
    kList,     ///< list_ holds each block.
    kMixed,    ///< entries_ hold all; first_ and hints_ tell which one holds an index.
  };

  Status check(std::string_view what, std::span<const StridedRange> ranges);
  void adopt(std::span<const StridedRange> ranges);
  void index_entries();
  /// Of a mixed table: the entry that holds block `index`.
  std::size_t find_entry(std::uint64_t index) const {
    const std::size_t bucket = static_cast<std::size_t>(index >> hint_shift_);
    const auto from = first_.begin() + hints_[bucket] + 1, to = first_.begin() + hints_[bucket + 1] + 1;
    return static_cast<std::size_t>(std::upper_bound(from, to, index) - first_.begin()) - 1;
  }

  Kind kind_ = Kind::kStrided;
  std::byte* base_ = nullptr;
  std::uint64_t region_size_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t uniform_size_ = 0;
  std::vector<StridedRange> entries_;
  std::vector<Block> list_;
  std::vector<std::uint64_t> first_;  ///< Index of each entry's first block.
  /// Entry that holds block (number << hint_shift_), then the last entry: so a search looks at few.
  std::vector<std::uint32_t> hints_;
  unsigned hint_shift_ = 0;
};

}  // namespace hawser::plan
