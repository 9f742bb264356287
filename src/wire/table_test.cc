#include "wire/table.h"

#include <gtest/gtest.h>

#include "wire/checksum.h"
#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

bool same(const std::vector<StridedRange>& a, const std::vector<StridedRange>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].offset != b[i].offset || a[i].size != b[i].size || a[i].stride != b[i].stride ||
        a[i].count != b[i].count) {
      return false;
    }
  }
  return true;
}

void expect_round_trip(const TableShape& table) {
  const std::string bytes = encode(table).value();
  const Result<TableShape> got = decode_table(base::as_bytes(bytes));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->region, table.region);
  EXPECT_EQ(got->generation, table.generation);
  EXPECT_EQ(got->mark, table.mark);
  EXPECT_TRUE(same(got->ranges, table.ranges));
}

TableShape mixed() {
  return {
      7,
      3,
      {{4096, 512, 0, 1}, {4608, 512, 0, 1}, {0, 512, 0, 1}, {1 << 20, 4096, 8192, 100}, {5, 1, 7, 1}, {9, 2, 0, 4}},
      0x0807060504030201};
}

std::string with_checksum(std::string bytes) {
  if (bytes.size() < kChecksumSize) return bytes;
  const std::size_t covered = bytes.size() - kChecksumSize;
  base::store_little_endian(bytes.data() + covered, checksum(base::as_bytes(bytes).first(covered)));
  return bytes;
}

TEST(Table, GoldenVectors) {
  EXPECT_EQ(hex(encode({7, 3, {{0, 4096, 4096, 1000000}}}).value()),
            "4857544202070300000000000000000103010080208020c0843d7f34d752632c4ad8");
  EXPECT_EQ(hex(encode(mixed()).value()),
            "48575442020703010203040506070806010180408004000200ff4f030380f87f8020804064f5bfe301010701060200045eb1fa5521"
            "6396d1");
}

TEST(Table, RoundTrips) {
  expect_round_trip({});
  expect_round_trip({1, 2, {{0, 1, 0, 1}}});
  expect_round_trip(mixed());
  expect_round_trip(
      {UINT32_MAX, UINT32_MAX, {{UINT64_MAX - 1, 1, 0, 1}, {0, UINT64_MAX, 0, 1}, {UINT64_MAX - 9, 9, 0, 7}}});
}

TEST(Table, RandomOnesRoundTrip) {
  base::Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    TableShape table;
    table.region = static_cast<std::uint32_t>(rng.u64());
    const std::uint64_t count = rng.below(50);
    for (std::uint64_t i = 0; i < count; ++i) {
      StridedRange range{rng.below(1u << 30), 1 + rng.below(3) * 512, 0, 1};
      if (rng.chance(0.3)) range.stride = rng.below(1u << 20), range.count = 1 + rng.below(1000);
      table.ranges.push_back(range);
    }
    expect_round_trip(table);
  }
}

TEST(Table, AStridedTableOfAMillionBlocksIsSmall) {
  EXPECT_LE(encode({7, 3, {{0, 4096, 4096, 1000000}}}).value().size(), 40u);
  const std::uint64_t stride = std::uint64_t{1} << 42;
  EXPECT_LE(encode({UINT32_MAX, UINT32_MAX, {{stride - 1, stride, stride, 1000000}}}).value().size(), 64u);
}

TEST(Table, AListOfBlocksTakesAFewBytesForEach) {
  base::Rng rng(3);
  TableShape table;
  for (int i = 0; i < 10000; ++i) table.ranges.push_back({rng.below(1 << 20) * 4096, 4096, 0, 1});  // in 4 GiB
  EXPECT_LE(encode(table).value().size(), 5u * 10000 + 64);
  expect_round_trip(table);
}

TEST(Table, WrongTablesAreInvalid) {
  const auto code_of = [](const StridedRange& range) { return encode({0, 0, {range}}).error().code(); };
  EXPECT_EQ(code_of({0, 0, 0, 1}), Code::kInvalid);
  EXPECT_EQ(code_of({0, 1, 0, 0}), Code::kInvalid);
  EXPECT_EQ(code_of({UINT64_MAX, 1, 0, 1}), Code::kInvalid);
  EXPECT_EQ(code_of({0, 1, UINT64_MAX / 2, 4}), Code::kInvalid);
  EXPECT_EQ(code_of({0, 1, 0, kTableBlocksMax + 1}), Code::kInvalid);
  EXPECT_EQ(encode({0, 0, {{0, 1, 0, kTableBlocksMax}, {0, 1, 0, 1}}}).error().code(), Code::kInvalid);
  TableShape long_one;
  long_one.ranges.resize(kTableRangesMax + 1, {0, 1, 0, 1});
  EXPECT_EQ(encode(long_one).error().code(), Code::kInvalid);
}

TEST(Table, EveryCutAndEveryFlippedBitIsCorrupt) {
  const std::string good = encode(mixed()).value();
  feed_every_cut(good, [](auto bytes) { EXPECT_EQ(decode_table(bytes).error().code(), Code::kCorrupt); });
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    feed(bytes, [](auto in) { EXPECT_EQ(decode_table(in).error().code(), Code::kCorrupt); });
  }
}

TEST(Table, GarbageBehindAGoodChecksumIsAnswered) {
  feed_garbage(encode(mixed()).value(), 30000, [](auto bytes) {
    feed(with_checksum(std::string(base::as_text(bytes))), [](auto in) {
      const Result<TableShape> got = decode_table(in);
      if (got) {
        expect_round_trip(*got);
      } else {
        EXPECT_TRUE(got.error().code() == Code::kCorrupt || got.error().code() == Code::kUnsupported);
      }
    });
  });
}

TEST(Table, ANewerVersionIsUnsupported) {
  std::string bytes = encode(mixed()).value();
  bytes[4] = 3;
  const Status fault = decode_table(base::as_bytes(with_checksum(bytes))).error();
  EXPECT_EQ(fault.code(), Code::kUnsupported);
  EXPECT_EQ(fault.message(), "table: version 3, this agent reads 2");
}

TEST(Checksum, EveryPairOfFlippedTopBitsShows) {
  std::string bytes(64, 'a');
  const std::uint64_t good = checksum(base::as_bytes(bytes));
  for (std::size_t first = 7; first < bytes.size(); first += 8) {
    for (std::size_t second = first + 8; second < bytes.size(); second += 8) {
      std::string changed = bytes;
      changed[first] = static_cast<char>(changed[first] ^ 0x80);
      changed[second] = static_cast<char>(changed[second] ^ 0x80);
      EXPECT_NE(checksum(base::as_bytes(changed)), good);
    }
  }
  for (std::size_t size = 0; size <= 16; ++size) {  // zeros at the end count too
    EXPECT_NE(checksum(base::as_bytes(std::string(size, '\0'))), checksum(base::as_bytes(std::string(size + 1, '\0'))));
  }
}

}  // namespace
}  // namespace hawser::wire
