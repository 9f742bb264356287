#include "plan/row_table.h"

#include "base/check.h"
#include "base/large_memory.h"

namespace hawser::plan {

void RowTable::add(const Row& row) {
  if (row.count == 0) return;
  if (row.count == 1) return add(row.offset, row.size, row.region);
  if (is_list_) {
    for (std::uint64_t i = 0; i < row.count; ++i) {
      list_.push_back({row.offset + i * row.stride, row.size, row.region});
    }
  } else {
    rows_.push_back(row);
  }
  count_ += row.count;
}

void RowTable::become_list() {
  is_list_ = true;
  base::reserve_large(list_, std::max<std::size_t>(expected_, count_));
  for (const Row& row : rows_) {
    for (std::uint64_t i = 0; i < row.count; ++i) {
      list_.push_back({row.offset + i * row.stride, row.size, row.region});
    }
  }
  rows_ = {};
}

void RowTable::finish() {
  if (is_list_ || rows_.size() < 2) return;
  first_.reserve(rows_.size());
  std::uint64_t first = 0;
  for (const Row& row : rows_) {
    first_.push_back(first);
    first += row.count;
  }
  // Four hints per row: with counts that are alike, a search then looks at one or two rows.
  while (((count_ - 1) >> hint_shift_) >= 4 * rows_.size()) ++hint_shift_;
  const auto buckets = static_cast<std::size_t>((count_ - 1) >> hint_shift_) + 1;
  hints_.reserve(buckets + 1);
  std::uint32_t row = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::uint64_t index = std::uint64_t{bucket} << hint_shift_;
    while (row + 1 < first_.size() && first_[row + 1] <= index) ++row;
    hints_.push_back(row);
  }
  hints_.push_back(static_cast<std::uint32_t>(rows_.size()) - 1);
}

RowBlock RowTable::at(std::uint64_t index) const {
  HAWSER_ASSERT(index < count_, "the index of a block was not checked");
  if (is_list_) return list_[index];
  const std::size_t row = find_row(index);
  return {rows_[row].offset + (index - first_of(row)) * rows_[row].stride, rows_[row].size, rows_[row].region};
}

}  // namespace hawser::plan
