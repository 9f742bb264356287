// Bytes get where they belong, whatever their size, place and number of ranges.

#include <array>

#include "agent_suite.h"

namespace hawser::conformance {
namespace {

constexpr std::byte kEmpty{0xee};
constexpr std::array<std::size_t, 22> kSizes = {
    1,   2,    3,    7,    8,     9,     63,    64,     65,      255,           256,
    257, 4095, 4096, 4097, 65535, 65536, 65537, 262145, 1 << 20, (1 << 20) + 1, (3 << 20) + 5};
constexpr std::size_t kRoom = (3 << 20) + 4096;

void clear(std::span<std::byte> bytes) { std::ranges::fill(bytes, kEmpty); }

/// What lies outside of [from, from + size) is as `clear` left it.
testing::AssertionResult untouched_around(std::span<const std::byte> bytes, std::size_t from, std::size_t size) {
  if (const auto before = all_are(bytes.first(from), kEmpty); !before) return before;
  return all_are(bytes.subspan(from + size), kEmpty);
}

TEST_P(Conformance, WritesEverySize) {
  open_pair();
  Area source = add(a(), "source", kRoom), target = add(b(), "target", kRoom);
  const Peer peer = a_to_b();
  fill(source.bytes, 1);
  for (const std::size_t size : kSizes) {
    clear(target.bytes);
    const std::size_t from = size % 13, to = size % 29;
    const Plan plan = must(a().plan_write(peer, {{source.range(from, size)}}, {{peer.range("target", to, size)}}));
    EXPECT_EQ(plan.bytes(), size);
    Transfer sent = must(plan.submit());
    ASSERT_TRUE(finish(sent).ok()) << sent.status().to_string();
    EXPECT_EQ(sent.bytes(), size);
    ASSERT_TRUE(holds(target.bytes.subspan(to, size), 1, from)) << size;
    ASSERT_TRUE(untouched_around(target.bytes, to, size)) << size;
  }
}

TEST_P(Conformance, ReadsEverySize) {
  open_pair();
  Area target = add(a(), "target", kRoom), source = add(b(), "source", kRoom);
  const Peer peer = a_to_b();
  fill(source.bytes, 2);
  for (const std::size_t size : kSizes) {
    clear(target.bytes);
    const std::size_t from = size % 31, to = size % 11;
    const Plan plan = must(a().plan_read(peer, {{peer.range("source", from, size)}}, {{target.range(to, size)}}));
    EXPECT_EQ(plan.operation(), Operation::kRead);
    const Status status = run(plan);
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(holds(target.bytes.subspan(to, size), 2, from)) << size;
    ASSERT_TRUE(untouched_around(target.bytes, to, size)) << size;
  }
}

/// Ranges of three regions on each side in an order that helps nobody.
struct Scattered {
  std::vector<LocalRange> local;
  std::vector<RemoteRange> remote;
};

Scattered scatter(const std::vector<Area>& ours, const std::vector<std::string>& theirs, const Peer& peer) {
  Scattered all;
  constexpr std::size_t kRanges = 96, kStep = 1031;
  for (std::size_t i = 0; i < kRanges; ++i) {
    const std::size_t size = 1 + (i * 37) % 1000, at = (i * 59) % kRanges;
    all.local.push_back(ours[i % ours.size()].range(at * kStep, size));
    all.remote.push_back(peer.range(theirs[(i / 2) % theirs.size()], i * kStep, size));
  }
  return all;
}

TEST_P(Conformance, ListsSpanSeveralRegions) {
  open_pair();
  constexpr std::size_t kSize = 100 * 1031;
  std::vector<Area> ours, theirs;
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    ours.push_back(add(a(), "ours" + std::to_string(i), kSize));
    theirs.push_back(add(b(), "theirs" + std::to_string(i), kSize));
    names.push_back(theirs.back().name());
    fill(ours.back().bytes, 10 + i);
    clear(theirs.back().bytes);
  }
  const Peer peer = a_to_b();
  const Scattered all = scatter(ours, names, peer);
  must(run(must(a().plan_write(peer, all.local, all.remote))));
  std::vector<std::vector<std::byte>> expected(3, std::vector<std::byte>(kSize, kEmpty));
  for (std::size_t i = 0; i < all.local.size(); ++i) {
    const auto from = ours[i % 3].bytes.subspan(all.local[i].offset, all.local[i].size);
    std::ranges::copy(from, expected[(i / 2) % 3].begin() + static_cast<std::ptrdiff_t>(all.remote[i].offset));
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(theirs[i].bytes, expected[i])) << i;

  // And back: what was written is read into cleared memory.
  std::vector<std::vector<std::byte>> original;
  for (Area& area : ours) {
    original.emplace_back(area.bytes.begin(), area.bytes.end());
    clear(area.bytes);
  }
  must(run(must(a().plan_read(peer, all.remote, all.local))));
  for (std::size_t i = 0; i < all.local.size(); ++i) {
    const auto now = ours[i % 3].bytes.subspan(all.local[i].offset, all.local[i].size);
    const auto was = std::span(original[i % 3]).subspan(all.local[i].offset, all.local[i].size);
    ASSERT_TRUE(same(now, was)) << i;
  }
}

TEST_P(Conformance, OneSourceMayGoToManyPlaces) {
  open_pair();
  constexpr std::size_t kPiece = 5000, kCopies = 40;
  Area source = add(a(), "source", kPiece), target = add(b(), "target", kPiece * kCopies);
  fill(source.bytes, 3);
  const Peer peer = a_to_b();
  std::vector<LocalRange> from(kCopies, source.range(0, kPiece));
  std::vector<RemoteRange> to;
  for (std::size_t i = 0; i < kCopies; ++i) to.push_back(peer.range("target", (kCopies - 1 - i) * kPiece, kPiece));
  must(run(must(a().plan_write(peer, from, to))));
  for (std::size_t i = 0; i < kCopies; ++i) EXPECT_TRUE(holds(target.bytes.subspan(i * kPiece, kPiece), 3)) << i;
}

TEST_P(Conformance, NeighboursAreMerged) {
  open_pair();
  constexpr std::size_t kPiece = 100, kCount = 64;
  Area source = add(a(), "source", kPiece * kCount), target = add(b(), "target", kPiece * kCount);
  fill(source.bytes, 4);
  const Peer peer = a_to_b();
  std::vector<LocalRange> from;
  std::vector<RemoteRange> to;
  for (std::size_t i = 0; i < kCount; ++i) {
    from.push_back(source.range(i * kPiece, kPiece));
    to.push_back(peer.range("target", i * kPiece, kPiece));
  }
  const Plan merged = must(a().plan_write(peer, from, to));
  EXPECT_EQ(merged.range_count(), kCount);
  EXPECT_EQ(merged.piece_count(), 1U);
  std::swap(to[10], to[20]);
  const Plan broken = must(a().plan_write(peer, from, to));
  EXPECT_EQ(broken.piece_count(), 5U);  // 0-9, 10, 11-19, 20, 21-63.
  must(run(broken));
  EXPECT_TRUE(holds(target.bytes.subspan(2000, kPiece), 4, 1000));
  must(run(merged));
  EXPECT_TRUE(holds(target.bytes, 4));
}

TEST_P(Conformance, OverlappingRegionsAreOneMemory) {
  open_pair();
  std::vector<std::byte> memory(64 * 1024);
  const auto whole = std::span(memory);
  const Region all = must(b().add_region({.name = "all", .bytes = whole, .device = {}}));
  const Region again = must(b().add_region({.name = "again", .bytes = whole, .device = {}}));
  const Region half = must(b().add_region({.name = "half", .bytes = whole.subspan(1000, 30000), .device = {}}));
  Area source = add(a(), "source", 64 * 1024);
  fill(source.bytes, 5);
  EXPECT_EQ(b().counters().regions_gauge, self() ? 4U : 3U);
  EXPECT_EQ(b().counters().region_bytes_gauge, 64U * 1024 * (self() ? 3 : 2) + 30000);
  const Peer peer = a_to_b();
  const std::vector<LocalRange> from = {source.range(0, 1000), source.range(1000, 30000), source.range(31000, 34536)};
  const std::vector<RemoteRange> to = {peer.range("all", 0, 1000), peer.range("half", 0, 30000),
                                       peer.range("again", 31000, 34536)};
  must(run(must(a().plan_write(peer, from, to))));
  EXPECT_TRUE(holds(memory, 5));
}

TEST_P(Conformance, BothSidesInitiateAtOnce) {
  open_pair();
  constexpr std::size_t kSize = 300 * 1000;
  Area ours = add(a(), "ours", 4 * kSize), theirs = add(b(), "theirs", 4 * kSize);
  fill(ours.bytes.first(kSize), 6);
  fill(theirs.bytes.first(kSize), 7);
  fill(ours.bytes.subspan(kSize, kSize), 8);
  fill(theirs.bytes.subspan(kSize, kSize), 9);
  const Peer to_b = a_to_b(), to_a = b_to_a();
  const auto their = [&](std::size_t place) { return to_b.range("theirs", place * kSize, kSize); };
  const auto our = [&](std::size_t place) { return to_a.range("ours", place * kSize, kSize); };
  std::vector<Plan> plans;
  plans.push_back(must(a().plan_write(to_b, {{ours.range(0, kSize)}}, {{their(2)}})));
  plans.push_back(must(b().plan_write(to_a, {{theirs.range(0, kSize)}}, {{our(2)}})));
  plans.push_back(must(a().plan_read(to_b, {{their(1)}}, {{ours.range(3 * kSize, kSize)}})));
  plans.push_back(must(b().plan_read(to_a, {{our(1)}}, {{theirs.range(3 * kSize, kSize)}})));
  std::vector<Transfer> all;
  for (const Plan& plan : plans) all.push_back(must(plan.submit()));
  for (Transfer& each : all) must(finish(each));
  EXPECT_TRUE(holds(theirs.bytes.subspan(2 * kSize, kSize), 6));
  EXPECT_TRUE(holds(ours.bytes.subspan(2 * kSize, kSize), 7));
  EXPECT_TRUE(holds(theirs.bytes.subspan(3 * kSize), 8));
  EXPECT_TRUE(holds(ours.bytes.subspan(3 * kSize), 9));
}

TEST_P(Conformance, AllocatedAndForeignMemoryMix) {
  open_pair();
  constexpr std::size_t kSize = 200 * 1000;
  Area allocated;
  allocated.region = must(b().allocate({.name = "allocated", .size = kSize}));
  allocated.bytes = allocated.region.bytes();
  Area foreign = add_foreign(b(), "foreign", kSize), source = add_foreign(a(), "source", 2 * kSize);
  fill(source.bytes, 11);
  const Peer peer = a_to_b();
  must(run(must(a().plan_write(peer, {{source.range(0, kSize), source.range(kSize, kSize)}},
                               {{peer.range("allocated", 0, kSize), peer.range("foreign", 0, kSize)}}))));
  EXPECT_TRUE(holds(allocated.bytes, 11));
  EXPECT_TRUE(holds(foreign.bytes, 11, kSize));
}

}  // namespace
}  // namespace hawser::conformance
