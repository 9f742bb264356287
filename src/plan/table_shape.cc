#include "plan/table_shape.h"

#include "base/check.h"
#include "base/format.h"
#include "base/large_memory.h"

namespace hawser::plan {
namespace {

/// Whether all blocks of `range` lie in the region; safe against overflow.
bool fits(const StridedRange& range, std::uint64_t region_size) {
  std::uint64_t end = 0;
  return !__builtin_mul_overflow(range.count - 1, range.stride, &end) &&
         !__builtin_add_overflow(end, range.offset, &end) && !__builtin_add_overflow(end, range.size, &end) &&
         end <= region_size;
}

Status outside(std::string_view what, std::size_t number, const StridedRange& range, std::uint64_t region_size) {
  std::string text =
      range.count == 1
          ? base::format("{}: range {} (offset {}, size {}) leaves the region of {} bytes", what, number, range.offset,
                         range.size, region_size)
          : base::format(
                "{}: range {} ({} blocks of {} bytes, stride {}, from offset {}) leaves the region of {} bytes", what,
                number, range.count, range.size, range.stride, range.offset, region_size);
  return Status(Code::kInvalid, std::move(text))
      .with_advice("offset + (count - 1) * stride + size must be at most its size");
}

/// A list of single blocks at equal distances, as users often write them, is one strided range.
bool is_regular(std::span<const StridedRange> ranges) {
  const StridedRange& first = ranges.front();
  if (ranges.size() < 2 || ranges[1].offset < first.offset) return false;
  const std::uint64_t stride = ranges[1].offset - first.offset;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    // Cannot overflow for blocks that are in bounds: an offset that does not match stops the loop before.
    if (ranges[i].size != first.size || ranges[i].offset != first.offset + i * stride) return false;
  }
  return true;
}

}  // namespace

Result<TableShape> TableShape::make(std::string_view what, std::byte* base, std::uint64_t region_size,
                                    std::span<const StridedRange> ranges) {
  TableShape shape;
  shape.base_ = base;
  shape.region_size_ = region_size;
  if (const Status wrong = shape.check(what, ranges); !wrong.ok()) return wrong;
  shape.adopt(ranges);
  return shape;
}

Result<TableShape> TableShape::whole_blocks(std::string_view what, std::byte* base, std::uint64_t region_size,
                                            std::uint64_t block_bytes) {
  if (block_bytes == 0 || block_bytes > region_size) {
    return Status(Code::kInvalid, base::format("{}: no block of {} bytes fits into the region of {} bytes", what,
                                               block_bytes, region_size))
        .with_advice("give a block size from 1 to the region's size");
  }
  const StridedRange all{.offset = 0, .size = block_bytes, .stride = block_bytes, .count = region_size / block_bytes};
  return make(what, base, region_size, {&all, 1});
}

Status TableShape::check(std::string_view what, std::span<const StridedRange> ranges) {
  if (ranges.empty()) {
    return Status(Code::kInvalid, base::format("{}: the list of ranges is empty", what))
        .with_advice("give at least one");
  }
  if (ranges.size() > kTableEntriesMax) {
    return Status(Code::kInvalid, base::format("{}: {} ranges are more than {}", what, ranges.size(), kTableEntriesMax))
        .with_advice("use strided ranges, or several tables");
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].size == 0 || ranges[i].count == 0) {
      return Status(Code::kInvalid,
                    base::format("{}: range {} is empty (size {}, count {})", what, i, ranges[i].size, ranges[i].count))
          .with_advice("leave empty ranges out");
    }
    if (!fits(ranges[i], region_size_)) return outside(what, i, ranges[i], region_size_);
    if (__builtin_add_overflow(count_, ranges[i].count, &count_)) {
      return Status(Code::kInvalid, base::format("{}: more than 2^64 blocks", what)).with_advice("use several tables");
    }
  }
  return {};
}

void TableShape::adopt(std::span<const StridedRange> ranges) {
  const auto same_size = [&](const StridedRange& range) { return range.size == ranges.front().size; };
  uniform_size_ = std::all_of(ranges.begin(), ranges.end(), same_size) ? ranges.front().size : 0;
  if (ranges.size() == 1) {
    entries_.assign(ranges.begin(), ranges.end());
  } else if (count_ == ranges.size() && is_regular(ranges)) {
    entries_.push_back({.offset = ranges[0].offset,
                        .size = ranges[0].size,
                        .stride = ranges[1].offset - ranges[0].offset,
                        .count = count_});
  } else if (count_ == ranges.size()) {
    kind_ = Kind::kList;
    base::reserve_large(list_, ranges.size());
    for (const StridedRange& range : ranges) list_.push_back({range.offset, range.size});
  } else {
    kind_ = Kind::kMixed;
    entries_.assign(ranges.begin(), ranges.end());
    index_entries();
  }
}

void TableShape::index_entries() {
  first_.reserve(entries_.size());
  std::uint64_t first = 0;
  for (const StridedRange& entry : entries_) {
    first_.push_back(first);
    first += entry.count;
  }
  // Four hints per entry: with counts that are alike, a search then looks at one or two entries.
  while (((count_ - 1) >> hint_shift_) >= 4 * entries_.size()) ++hint_shift_;
  const auto buckets = static_cast<std::size_t>((count_ - 1) >> hint_shift_) + 1;
  hints_.reserve(buckets + 1);
  std::uint32_t entry = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::uint64_t index = std::uint64_t{bucket} << hint_shift_;
    while (entry + 1 < first_.size() && first_[entry + 1] <= index) ++entry;
    hints_.push_back(entry);
  }
  hints_.push_back(static_cast<std::uint32_t>(entries_.size()) - 1);
}

Block TableShape::at(std::uint64_t index) const {
  HAWSER_ASSERT(index < count_, "the index of a block was not checked");
  if (kind_ == Kind::kList) return list_[index];
  std::size_t entry = 0;
  if (kind_ == Kind::kMixed) {
    entry = find_entry(index);
    index -= first_[entry];
  }
  return {entries_[entry].offset + index * entries_[entry].stride, entries_[entry].size};
}

StridedRange TableShape::entry(std::size_t number) const {
  if (kind_ != Kind::kList) return entries_[number];
  return {.offset = list_[number].offset, .size = list_[number].size, .stride = 0, .count = 1};
}

}  // namespace hawser::plan
