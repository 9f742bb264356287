#include "wire/table.h"

#include <bit>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"
#include "wire/checksum.h"

namespace hawser::wire {
namespace {

using base::ByteReader;
using base::ByteWriter;
using Bytes = std::span<const std::byte>;

constexpr std::uint8_t kTableVersion = 2;
constexpr std::uint8_t kSized = 1;
constexpr std::uint8_t kStrided = 2;
constexpr std::size_t kFrameMin = 4 + 1 + 1 + 1 + 8 + 1 + kChecksumSize;

// Where coding stands: what the next range is compared with.
struct Cursor {
  std::uint64_t end = 0;
  std::uint64_t size = 0;
};

// End of the last block, or nothing when it passes 2^64.
bool end_of(const StridedRange& range, std::uint64_t& end) {
  std::uint64_t last = 0;
  return !__builtin_mul_overflow(range.count - 1, range.stride, &last) &&
         !__builtin_add_overflow(last, range.offset, &last) && !__builtin_add_overflow(last, range.size, &end);
}

// The fault of a range; null when it has none. Adds its blocks to `blocks`.
const char* fault_of(const StridedRange& range, std::uint64_t& blocks, std::uint64_t& end) {
  if (range.count == 0 || range.size == 0) return "has no blocks or no bytes";
  if (range.count > kTableBlocksMax - blocks) return "brings too many blocks";
  if (!end_of(range, end)) return "goes past 2^64";
  blocks += range.count;
  return nullptr;
}

std::uint8_t flags_of(const StridedRange& range, std::uint64_t size_before) {
  const bool single = range.count == 1 && range.stride == 0;
  return static_cast<std::uint8_t>((range.size == size_before ? 0 : kSized) | (single ? 0 : kStrided));
}

// The difference of two 64-bit numbers, small either way, as a small number. It wraps and so is exact.
constexpr std::uint64_t zigzag(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t gap = to - from;
  return gap << 1 ^ (0 - (gap >> 63));
}
constexpr std::uint64_t unzigzag(std::uint64_t from, std::uint64_t coded) {
  return from + (coded >> 1 ^ (0 - (coded & 1)));
}

void put_range(const StridedRange& range, std::uint8_t flags, std::uint64_t end_before, ByteWriter& out) {
  out.varint(zigzag(end_before, range.offset));
  if ((flags & kSized) != 0) out.varint(range.size);
  if ((flags & kStrided) == 0) return;
  out.varint(range.stride);
  out.varint(range.count);
}

// How many ranges from `first` on share the flags of the first.
std::size_t run_length(std::span<const StridedRange> ranges, std::uint8_t flags) {
  std::size_t length = 1;
  while (length < ranges.size() && flags_of(ranges[length], ranges[length - 1].size) == flags) ++length;
  return length;
}

Status put_runs(std::span<const StridedRange> ranges, ByteWriter& out) {
  Cursor before;
  std::uint64_t blocks = 0;
  while (!ranges.empty()) {
    const std::uint8_t flags = flags_of(ranges[0], before.size);
    const std::size_t length = run_length(ranges, flags);
    out.u8(flags);
    out.varint(length);
    for (const StridedRange& range : ranges.first(length)) {
      std::uint64_t end = 0;
      if (const char* fault = fault_of(range, blocks, end)) {
        return Status(Code::kInvalid, base::format("table: the range at offset {} {}", range.offset, fault));
      }
      put_range(range, flags, before.end, out);
      before = {end, range.size};
    }
    ranges = ranges.subspan(length);
  }
  return {};
}

[[gnu::cold, gnu::noinline]] Status corrupt_table_at(std::size_t offset, std::string_view what) {
  return Status(Code::kCorrupt, base::format("table: {} at byte {}", what, offset));
}

Status check_table_frame(Bytes bytes) {
  if (bytes.size() < kFrameMin)
    return Status(Code::kCorrupt, base::format("table: {} bytes are too few", bytes.size()));
  if (bytes.size() > kTableSizeMax)
    return Status(Code::kCorrupt, base::format("table: {} bytes are too many", bytes.size()));
  if (base::load_little_endian<std::uint32_t>(bytes.data()) != kTableMagic)
    return corrupt_table_at(0, "this is no table: wrong magic");
  const std::size_t covered = bytes.size() - kChecksumSize;
  if (checksum(bytes.first(covered)) != base::load_little_endian<std::uint64_t>(bytes.data() + covered)) {
    return corrupt_table_at(covered, "the checksum does not match (cut off or changed)");
  }
  const auto version = std::to_integer<unsigned>(bytes[4]);
  if (version == kTableVersion) return {};
  return Status(Code::kUnsupported, base::format("table: version {}, this agent reads {}", version, kTableVersion));
}

// Reads `length` ranges with the same flags. Null, or what is wrong with the last one read.
const char* read_run(ByteReader& in, std::uint8_t flags, std::size_t length, Cursor& before, std::uint64_t& blocks,
                     std::vector<StridedRange>& ranges) {
  for (std::size_t i = 0; i < length; ++i) {
    StridedRange range;
    range.offset = unzigzag(before.end, in.varint());
    range.size = (flags & kSized) != 0 ? in.varint() : before.size;
    if ((flags & kStrided) != 0) {
      range.stride = in.varint();
      range.count = in.varint();
    }
    if (!in.ok()) return "is malformed";
    std::uint64_t end = 0;
    if (const char* fault = fault_of(range, blocks, end)) return fault;
    ranges.push_back(range);
    before = {end, range.size};
  }
  return nullptr;
}

Status read_runs(ByteReader& in, std::size_t covered, std::size_t count, std::vector<StridedRange>& ranges) {
  Cursor before;
  std::uint64_t blocks = 0;
  while (ranges.size() < count) {
    const std::size_t at = covered - in.remaining();
    const std::uint8_t flags = in.u8();
    const std::size_t length = in.count(count - ranges.size(), 1);
    if (!in.ok() || flags > (kSized | kStrided) || length == 0)
      return corrupt_table_at(at, "a run of ranges is malformed");
    if (const char* fault = read_run(in, flags, length, before, blocks, ranges)) {
      return corrupt_table_at(at, base::format("in the run, range {} {}", ranges.size(), fault));
    }
  }
  return in.finished() ? Status() : corrupt_table_at(covered - in.remaining(), "bytes follow the ranges");
}

}  // namespace

Result<std::string> encode(const TableShape& table) {
  if (table.ranges.size() > kTableRangesMax) {
    return Status(Code::kInvalid,
                  base::format("table: {} ranges, the most is {}", table.ranges.size(), kTableRangesMax));
  }
  std::string out;
  ByteWriter writer(&out);
  writer.u32(kTableMagic);
  writer.u8(kTableVersion);
  writer.varint(table.region);
  writer.varint(table.generation);
  writer.u64(table.mark);
  writer.varint(table.ranges.size());
  HAWSER_TRY(put_runs(table.ranges, writer));
  writer.u64(checksum(base::as_bytes(out)));
  if (out.size() > kTableSizeMax)
    return Status(Code::kInvalid, base::format("table: more than {} bytes", kTableSizeMax));
  return out;
}

Result<TableShape> decode_table(Bytes bytes) {
  HAWSER_TRY(check_table_frame(bytes));
  const std::size_t covered = bytes.size() - kChecksumSize;
  ByteReader in(bytes.first(covered));
  in.skip(5);  // magic and version
  TableShape table;
  table.region = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  table.generation = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  table.mark = in.u64();
  const std::size_t count = in.count(kTableRangesMax, 1);
  if (!in.ok()) return corrupt_table_at(5, "the head is malformed");
  table.ranges.reserve(count);
  HAWSER_TRY(read_runs(in, covered, count, table.ranges));
  return table;
}

}  // namespace hawser::wire
