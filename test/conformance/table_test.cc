// Prepared tables: blocks by index, strides, shapes sent as bytes, and a million ranges.

#include <algorithm>
#include <numeric>

#include "agent_suite.h"
#include "base/bytes.h"
#include "base/rng.h"

namespace hawser::conformance {
namespace {

std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t first = 0) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

std::vector<std::uint32_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> all = numbers(count);
  base::Rng rng(seed);
  for (std::size_t i = count - 1; i > 0; --i) std::swap(all[i], all[rng.below(i + 1)]);
  return all;
}

TEST_P(Conformance, BlocksGoByIndex) {
  open_pair();
  constexpr std::size_t kBlock = 4096, kCount = 512;
  Area source = add(a(), "source", kBlock * kCount), target = add(b(), "target", kBlock * kCount);
  const Peer peer = a_to_b();
  const RangeTable ours = source.region.table(kBlock), theirs = peer.table("target", kBlock);
  ASSERT_EQ(ours.size(), kCount);
  EXPECT_FALSE(ours.is_remote());
  EXPECT_TRUE(theirs.is_remote());
  const auto from = shuffled(kCount, 1), to = shuffled(kCount, 2);
  fill(source.bytes, 1);
  const Plan write = must(a().plan_write(peer, ours, from, theirs, to));
  EXPECT_EQ(write.range_count(), kCount);
  must(run(write));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(holds(target.bytes.subspan(to[i] * kBlock, kBlock), 1, from[i] * kBlock)) << i;
  }
  std::ranges::fill(source.bytes, std::byte{0});
  must(run(must(a().plan_read(peer, theirs, to, ours, from))));
  EXPECT_TRUE(holds(source.bytes, 1));
}

TEST_P(Conformance, RunsOfIndicesMerge) {
  open_pair();
  Area source = add(a(), "source", 64 * 100), target = add(b(), "target", 64 * 100);
  const Peer peer = a_to_b();
  const RangeTable ours = source.region.table(64), theirs = peer.table("target", 64);
  EXPECT_EQ(must(a().plan_write(peer, ours, numbers(100), theirs, numbers(100))).piece_count(), 1U);
  EXPECT_EQ(must(a().plan_write(peer, ours, numbers(50), theirs, numbers(50, 50))).piece_count(), 1U);
  const std::vector<std::uint32_t> gaps = {0, 1, 2, 10, 11, 20, 22, 24};
  EXPECT_EQ(must(a().plan_write(peer, ours, gaps, theirs, gaps)).piece_count(), 5U);
  auto backwards = numbers(100);
  std::ranges::reverse(backwards);
  EXPECT_EQ(must(a().plan_write(peer, ours, backwards, theirs, backwards)).piece_count(), 100U);
}

TEST_P(Conformance, StridesAndListsAreTables) {
  open_pair();
  Area source = add(a(), "source", 100 * 1000), target = add(b(), "target", 100 * 1000);
  const Peer peer = a_to_b();
  fill(source.bytes, 2);
  const RangeTable strided = source.region.table({.offset = 40, .size = 100, .stride = 1000, .count = 99});
  const std::vector<StridedRange> parts = {{.offset = 5, .size = 100, .stride = 300, .count = 90},
                                           {.offset = 50000, .size = 100, .stride = 100, .count = 8},
                                           {.offset = 90000, .size = 100, .stride = 0, .count = 1}};
  const RangeTable listed = peer.table("target", parts);
  ASSERT_TRUE(strided.status().ok() && listed.status().ok()) << listed.status().to_string();
  ASSERT_EQ(listed.size(), 99U);
  EXPECT_EQ(must(strided.at(98)).offset, 98040U);
  EXPECT_EQ(must(listed.at(90)).offset, 50000U);
  EXPECT_EQ(must(listed.at(98)).offset, 90000U);
  EXPECT_TRUE(says(listed.at(99).error(), Code::kInvalid, {"99"}));
  const auto order = shuffled(99, 3);
  must(run(must(a().plan_write(peer, strided, order, listed, numbers(99)))));
  for (std::uint32_t i = 0; i < 99; ++i) {
    const std::size_t at = must(listed.at(i)).offset;
    ASSERT_TRUE(holds(target.bytes.subspan(at, 100), 2, 40 + order[i] * 1000)) << i;
  }
}

TEST_P(Conformance, TablesTravelAsBytes) {
  open_pair();
  Area source = add(a(), "source", 64 * 1024), target = add(b(), "target", 64 * 1024);
  const Peer peer = a_to_b();
  const RangeTable made = target.region.table({.offset = 100, .size = 60, .stride = 64, .count = 1000});
  const std::string bytes = must(made.encode());
  const RangeTable imported = peer.import_table(base::as_bytes(bytes));
  ASSERT_TRUE(imported.status().ok()) << imported.status().to_string();
  EXPECT_TRUE(imported.is_remote());
  ASSERT_EQ(imported.size(), 1000U);
  EXPECT_EQ(must(imported.at(999)).offset, 100U + 999 * 64);
  fill(source.bytes, 3);
  must(run(must(a().plan_write(peer, source.region.table(60), numbers(1000), imported, numbers(1000)))));
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_TRUE(holds(target.bytes.subspan(100 + i * 64, 60), 3, i * 60)) << i;
}

TEST_P(Conformance, BrokenTableBytesAreRefused) {
  open_pair();
  Area target = add(b(), "target", 64 * 1024);
  const Peer peer = a_to_b();
  const std::string good = must(target.region.table({.offset = 8, .size = 60, .stride = 64, .count = 1000}).encode());
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    const RangeTable table = peer.import_table(base::as_bytes(std::string_view(good).substr(0, cut)));
    EXPECT_FALSE(table.status().ok()) << cut;
    EXPECT_EQ(table.size(), 0U);
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    const RangeTable table = peer.import_table(base::as_bytes(bad));
    if (!table.status().ok()) continue;
    const StridedRange last = must(table.at(table.size() - 1));  // What is let through stays inside.
    EXPECT_LE(last.offset + last.size, target.bytes.size());
  }
}

TEST_P(Conformance, TablesOfClosedRegionsAreStale) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area target = add(b(), "target", 64 * 1024);
  const Peer old = a_to_b();
  const std::string bytes = must(target.region.table(64).encode());
  must(target.region.close(kPatience));
  target.region = Region();
  Area again = add(b(), "target", 64 * 1024);
  ASSERT_EQ(again.region.index(), 0U);
  const Peer peer = a_to_b();
  EXPECT_TRUE(says(peer.import_table(base::as_bytes(bytes)).status(), Code::kNotFound, {"import_table", "generation"}));
}

// Another process has a region of the same index, and its generation says nothing of the other's.
TEST_P(Conformance, TablesOfAnotherAgentsRegionsAreRefused) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area target = add(b(), "target", 64 * 1024);
  Agent* const third = open(options("c"));
  Area other = add(*third, "target", 64 * 1024);
  const std::string bytes = must(target.region.table(64).encode());
  ASSERT_EQ(other.region.index(), target.region.index());
  ASSERT_TRUE(a_to_b().import_table(base::as_bytes(bytes)).status().ok());
  const Peer wrong = must(a().add_peer(must(third->card())));
  EXPECT_TRUE(says(wrong.import_table(base::as_bytes(bytes)).status(), Code::kNotFound, {"import_table", "another"}));
}

TEST_P(Conformance, AMillionRanges) {
  open_pair();
  constexpr std::size_t kBlock = 8, kStride = 16, kCount = 1'000'000;
  Area source = add(a(), "source", kBlock * kCount), target = add(b(), "target", kStride * kCount);
  const std::string bytes =
      must(target.region.table({.offset = 4, .size = kBlock, .stride = kStride, .count = kCount}).encode());
  EXPECT_LE(bytes.size(), 1024U);
  const Peer peer = a_to_b();
  const RangeTable theirs = peer.import_table(base::as_bytes(bytes));
  ASSERT_EQ(theirs.size(), kCount);
  fill(source.bytes, 4);
  const auto from = shuffled(kCount, 5);
  const Plan plan = must(a().plan_write(peer, source.region.table(kBlock), from, theirs, numbers(kCount)));
  EXPECT_EQ(plan.range_count(), kCount);
  must(run(plan, {.notify = "million", .deadline = 120s}));
  EXPECT_EQ(next_notification(b()).text, "million");
  for (std::size_t i = 0; i < kCount; i += 997) {
    ASSERT_TRUE(holds(target.bytes.subspan(4 + i * kStride, kBlock), 4, from[i] * kBlock)) << i;
  }
}

}  // namespace
}  // namespace hawser::conformance
