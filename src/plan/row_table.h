#pragma once

// RowTable: where the blocks of a prepared list lie that may be in several regions. As TableShape, but each row names
// its region, and blocks are added one by one: those at equal distances become one row as they come, so that a list of
// a million blocks of a cache is a few dozen rows.
//
// Thread rule: one thread while it is filled, then constant. Lifetime: values.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plan/table_shape.h"

namespace hawser::plan {

/// `count` blocks of `size` bytes, `stride` apart, in one region.
struct Row {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t stride = 0;
  std::uint64_t count = 1;
  std::uint32_t region = 0;  ///< A number of the caller's.
};

/// One block of a list that has no regular rows.
struct RowBlock {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t region = 0;
};

class RowTable {
 public:
  void reserve(std::size_t blocks) { expected_ = blocks; }
  /// One block. The caller has checked that it lies in its region and is not empty.
  void add(std::uint64_t offset, std::uint64_t size, std::uint32_t region) {
    ++count_;
    if (is_list_) return list_.push_back({offset, size, region});
    if (!rows_.empty() && extend(rows_.back(), offset, size, region)) return;
    rows_.push_back({.offset = offset, .size = size, .stride = 0, .count = 1, .region = region});
    if (rows_.size() >= kRowsBeforeList && rows_.size() * kBlocksPerRow > count_) become_list();
  }
  /// Many at once.
  void add(const Row& row);
  /// Before the first one: room of a former table's list, which this one takes over. It spares page faults.
  void reuse(std::vector<RowBlock> room) {
    list_ = std::move(room);
    list_.clear();
  }
  /// The list's room, for another table; this one is of no use any more.
  std::vector<RowBlock> take_room() { return std::move(list_); }
  /// After the last one; before any look-up.
  void finish();

  /// Takes `base_of(region)` off every offset: addresses become offsets.
  template <typename BaseOf>
  void rebase(BaseOf base_of) {
    for (RowBlock& block : list_) block.offset -= base_of(block.region);
    for (Row& row : rows_) row.offset -= base_of(row.region);
  }

  std::uint64_t count() const { return count_; }
  bool is_list() const { return is_list_; }
  const std::vector<RowBlock>& list() const { return list_; }
  const std::vector<Row>& rows() const { return rows_; }
  /// `index` < count().
  RowBlock at(std::uint64_t index) const;
  /// The row that holds block `index`, and the index of its first block. Not for a list.
  std::size_t find_row(std::uint64_t index) const {
    if (hints_.empty()) return 0;
    const auto bucket = static_cast<std::size_t>(index >> hint_shift_);
    const auto from = first_.begin() + hints_[bucket] + 1, to = first_.begin() + hints_[bucket + 1] + 1;
    return static_cast<std::size_t>(std::upper_bound(from, to, index) - first_.begin()) - 1;
  }
  std::uint64_t first_of(std::size_t row) const { return first_.empty() ? 0 : first_[row]; }

 private:
  // Rows cost a search per look-up and 40 bytes; below two blocks a row a plain list is smaller and faster.
  static constexpr std::size_t kRowsBeforeList = 64;
  static constexpr std::size_t kBlocksPerRow = 4;

  static bool extend(Row& row, std::uint64_t offset, std::uint64_t size, std::uint32_t region) {
    if (row.region != region || row.size != size || offset <= row.offset) return false;
    if (row.count == 1) {
      row.stride = offset - row.offset;
    } else if (offset != row.offset + row.count * row.stride) {
      return false;
    }
    ++row.count;
    return true;
  }
  void become_list();

  std::size_t expected_ = 0;
  std::uint64_t count_ = 0;
  bool is_list_ = false;
  std::vector<Row> rows_;
  std::vector<RowBlock> list_;
  std::vector<std::uint64_t> first_;  ///< These two are empty when there is but one row.
  std::vector<std::uint32_t> hints_;
  unsigned hint_shift_ = 0;
};

}  // namespace hawser::plan
