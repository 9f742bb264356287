#include "plan/pieces.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace hawser::plan {
namespace {

using Indices = std::vector<std::uint32_t>;

/// Never read or written: only its addresses matter.
std::byte* const kBase = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);

TableShape blocks(std::byte* base, std::uint64_t count, std::uint64_t size) {
  return TableShape::whole_blocks("t", base, count * size, size).value();
}

struct Pair {
  std::byte* local;
  std::uint64_t remote, size;
};

/// The same by the plainest code.
std::vector<Pair> merge(const std::vector<Pair>& pairs) {
  std::vector<Pair> merged;
  for (const Pair& pair : pairs) {
    if (!merged.empty() && merged.back().local + merged.back().size == pair.local &&
        merged.back().remote + merged.back().size == pair.remote) {
      merged.back().size += pair.size;
    } else {
      merged.push_back(pair);
    }
  }
  return merged;
}

void expect_pieces(const std::span<const Piece> pieces, const std::vector<Pair>& expected) {
  ASSERT_EQ(pieces.size(), expected.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ASSERT_EQ(pieces[i].local, expected[i].local) << i;
    ASSERT_EQ(pieces[i].remote, expected[i].remote) << i;
    ASSERT_EQ(pieces[i].size, expected[i].size) << i;
  }
}

TEST(PairTables, MergesWhatIsContiguousOnBothSides) {
  const auto local = blocks(kBase, 10, 100), remote = blocks(nullptr, 10, 100);
  const auto pieces = pair_tables("plan_write", local, Indices{0, 1, 2, 5, 4}, remote, Indices{3, 4, 6, 7, 8}).value();
  expect_pieces(pieces.all.span(),
                {{kBase, 300, 200}, {kBase + 200, 600, 100}, {kBase + 500, 700, 100}, {kBase + 400, 800, 100}});
  EXPECT_EQ(pieces.bytes, 500u);
  EXPECT_EQ(pieces.pair_count, 5u);
  ASSERT_EQ(pieces.groups.size(), 1u);
  EXPECT_EQ(pieces.groups[0].count, 4u);
  EXPECT_EQ(pieces.groups[0].bytes, 500u);
}

TEST(PairTables, ASequentialPlanIsOnePiece) {
  Indices all(100'000);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto pieces = pair_tables("p", blocks(kBase, 100'000, 4096), all, blocks(nullptr, 100'000, 4096), all).value();
  expect_pieces(pieces.all.span(), {{kBase, 0, 4096ull * 100'000}});
  EXPECT_EQ(pieces.all.capacity(), 1u);  // The room for the others went back.
}

TEST(PairTables, EveryKindOfTableAgreesWithPlainCode) {
  base::Rng rng(42);
  constexpr std::uint64_t kRegion = 1 << 20;
  const auto shape = [&](std::byte* base, int kind) {
    std::vector<StridedRange> ranges;
    if (kind == 0) ranges.push_back({rng.below(100), 64, rng.below(300), 500});
    for (int i = 0; kind == 1 && i < 500; ++i) ranges.push_back({rng.below(kRegion / 64) * 64, 64, 0, 1});
    for (int i = 0; kind == 2 && i < 25; ++i) ranges.push_back({rng.below(1000) * 64, 64, rng.below(3) * 64, 20});
    return TableShape::make("t", base, kRegion, ranges).value();
  };
  for (int round = 0; round < 90; ++round) {
    const auto local = shape(kBase, round % 3), remote = shape(nullptr, round / 3 % 3);
    Indices l, r;
    std::vector<Pair> pairs;
    for (int i = 0; i < 300; ++i) {
      const bool next = !l.empty() && rng.chance(0.6) && l.back() + 1 < 500 && r.back() + 1 < 500;
      l.push_back(next ? l.back() + 1 : static_cast<std::uint32_t>(rng.below(500)));
      r.push_back(next ? r.back() + 1 : static_cast<std::uint32_t>(rng.below(500)));
      pairs.push_back({kBase + local.at(l.back()).offset, remote.at(r.back()).offset, 64});
    }
    const auto pieces = pair_tables("plan_read", local, l, remote, r).value();
    expect_pieces(pieces.all.span(), merge(pairs));
    EXPECT_EQ(pieces.bytes, 300u * 64);
  }
}

TEST(PairTables, ErrorsNameCallPositionAndValues) {
  const auto local = blocks(kBase, 10, 100), remote = blocks(nullptr, 4, 200);
  const auto message = [&](const Indices& l, const Indices& r) {
    const Status status = pair_tables("plan_write", local, l, remote, r).status();
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_FALSE(status.advice().empty());
    return std::string(status.message());
  };
  EXPECT_EQ(message({}, {}), "plan_write: the lists of indices are empty");
  EXPECT_EQ(message({1, 2}, {1}), "plan_write: 2 local indices and 1 remote ones");
  EXPECT_EQ(message({10}, {0}), "plan_write: local index 10 at position 0 is outside the table of 10 ranges");
  EXPECT_EQ(message({1}, {UINT32_MAX}),
            "plan_write: remote index 4294967295 at position 0 is outside the table of 4 ranges");
  EXPECT_EQ(message({1}, {3}),
            "plan_write: the pair at position 0 has 100 local bytes (index 1) and 200 remote bytes (index 3)");
}

TEST(PairTables, TheFirstWrongPairIsNamed) {
  const auto table = blocks(kBase, 10, 100);
  const Status status =
      pair_tables("plan_read", table, Indices{1, 2, 3, 99, 98}, table, Indices{1, 2, 3, 4, 97}).status();
  EXPECT_EQ(status.message(), "plan_read: local index 99 at position 3 is outside the table of 10 ranges");
  EXPECT_EQ(status.advice(), "indices go from 0 to 9");
}

TEST(PairTables, AnEmptyShapeIsAnErrorNotACrash) {
  const Status status = pair_tables("p", TableShape(), Indices{0}, TableShape(), Indices{0}).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
}

TEST(PairTables, BytesThatDoNotFitIn64BitsAreRefused) {
  const StridedRange huge{0, UINT64_MAX / 2, 0, 8};
  const auto table = TableShape::make("t", kBase, UINT64_MAX / 2, {&huge, 1}).value();
  EXPECT_EQ(pair_tables("p", table, Indices{0, 1, 2}, table, Indices{0, 1, 2}).status().message(),
            "p: the ranges have 2^64 bytes or more in all");
}

TEST(PairParts, GroupsByRemoteRegionAndMergesWithin) {
  const std::vector<LocalPart> local{
      {kBase, 1000, 0, 100}, {kBase, 1000, 100, 50}, {kBase, 1000, 150, 50}, {kBase, 1000, 500, 10}};
  const std::vector<RemotePart> remote{{2, 300, 0, 100}, {0, 900, 40, 50}, {2, 300, 100, 50}, {0, 900, 90, 10}};
  const auto pieces = pair_parts("plan_write", local, remote, 3).value();
  ASSERT_EQ(pieces.groups.size(), 2u);
  EXPECT_EQ(pieces.groups[0].region, 2u);
  EXPECT_EQ(pieces.groups[0].bytes, 150u);
  EXPECT_EQ(pieces.groups[1].region, 0u);
  const auto of = [&](std::size_t g) {
    return pieces.all.span().subspan(pieces.groups[g].first, pieces.groups[g].count);
  };
  expect_pieces(of(0), {{kBase, 0, 100}, {kBase + 150, 100, 50}});
  expect_pieces(of(1), {{kBase + 100, 40, 50}, {kBase + 500, 90, 10}});
  EXPECT_EQ(pieces.bytes, 210u);
}

TEST(PairParts, AgreesWithPlainCode) {
  base::Rng rng(3);
  for (int round = 0; round < 100; ++round) {
    const auto regions = static_cast<std::uint32_t>(1 + rng.below(5));
    std::vector<LocalPart> local;
    std::vector<RemotePart> remote;
    std::vector<std::vector<Pair>> expected(regions);
    for (int i = 0; i < 200; ++i) {
      const bool next = i > 0 && rng.chance(0.7);
      const std::uint64_t size = 1 + rng.below(4);
      local.push_back({kBase, 1 << 20, next ? local.back().offset + local.back().size : rng.below(1000), size});
      remote.push_back({next ? remote.back().region : static_cast<std::uint32_t>(rng.below(regions)), 1 << 20,
                        next ? remote.back().offset + remote.back().size : rng.below(1000), size});
      expected[remote.back().region].push_back({kBase + local.back().offset, remote.back().offset, size});
    }
    const auto pieces = pair_parts("p", local, remote, regions).value();
    std::size_t at = 0;
    for (const PieceGroup& group : pieces.groups) {
      EXPECT_EQ(group.first, at);
      expect_pieces(pieces.all.span().subspan(group.first, group.count), merge(expected[group.region]));
      at += group.count;
    }
    EXPECT_EQ(at, pieces.all.size());
  }
}

TEST(PairParts, ErrorsNameThePosition) {
  const auto message = [](LocalPart local, RemotePart remote) {
    return std::string(pair_parts("plan_read", {&local, 1}, {&remote, 1}, 1).status().message());
  };
  EXPECT_EQ(message({kBase, 10, 0, 0}, {0, 10, 0, 0}), "plan_read: the local range at position 0 is empty");
  EXPECT_EQ(message({kBase, 10, 5, 6}, {0, 10, 0, 6}),
            "plan_read: the local range at position 0 (offset 5, size 6) leaves its region of 10 bytes");
  EXPECT_EQ(
      message({kBase, 10, 5, 5}, {0, 10, UINT64_MAX, 5}),
      "plan_read: the remote range at position 0 (offset 18446744073709551615, size 5) leaves its region of 10 bytes");
  EXPECT_EQ(message({kBase, 10, 5, 5}, {0, 10, 0, 4}),
            "plan_read: the pair at position 0 has 5 local and 4 remote bytes");
  EXPECT_EQ(pair_parts("p", {}, {}, 0).status().message(), "p: the lists of ranges are empty");
}

}  // namespace
}  // namespace hawser::plan
