// Lists of descriptors resolved to rows, and joined as they are read.

#include "compat/resolved.h"

#include <gtest/gtest.h>

#include <utility>

#include "compat/joined.h"
#include "compat/spot_maker.h"
#include "compat/test_peers.h"

namespace hawser::compat {
namespace {

struct ResolvedTest : ::testing::Test {
  void add(std::uint64_t addr, std::uint64_t len, BackendMask backends = 1) {
    RegDescList list(MemType::kDram);
    list.add(addr, len);
    SpotMaker maker("register_mem", own.agent, MemType::kDram, {});
    ASSERT_TRUE(maker.make(list.span()).ok());
    book.add(MemType::kDram, {.addr = addr, .len = len, .dev = 0}, std::move(maker.take().front()), backends);
  }
  template <typename Row>
  Status resolve(std::vector<Row> list) {
    out = {};
    return resolve_local("call", book.book(), std::span<const Row>(list), out);
  }
  Desc at(std::size_t offset, std::uint64_t len) const { return {.addr = own.address(offset), .len = len, .dev = 0}; }

  TestAgent own{"a"};
  LocalBook book;
  ResolvedList out;
};

TEST_F(ResolvedTest, EachRowNamesItsRegionInOrderOfFirstUse) {
  add(own.address(0), 64, 3);
  add(own.address(64), 64, 2);
  ASSERT_TRUE(resolve<Desc>({at(70, 8), at(0, 8), at(100, 28)}).ok());
  ASSERT_EQ(out.locals.size(), 2u);
  ASSERT_EQ(out.rows.count(), 3u);
  EXPECT_EQ(out.rows.at(0).region, 0u);
  EXPECT_EQ(out.rows.at(1).region, 1u);
  EXPECT_EQ(out.rows.at(2).region, 0u);
  EXPECT_EQ(out.rows.at(1).offset, own.address(0)) << "local rows are addresses";
  EXPECT_EQ(out.backends, 2u) << "that have all of it";
}

TEST_F(ResolvedTest, WhatIsOfNoBytesKeepsItsPlace) {
  add(own.address(0), 64);
  ASSERT_TRUE(resolve<Desc>({at(8, 8), {.addr = 1, .len = 0, .dev = 9}}).ok());
  EXPECT_TRUE(out.has_empty);
  EXPECT_EQ(out.rows.at(1).size, 0u);
}

TEST_F(ResolvedTest, WhatLiesInNoRegistrationIsNamed) {
  add(own.address(0), 64);
  const Status status = resolve<Desc>({at(0, 8), at(60, 8)});
  EXPECT_EQ(code_of(status), NixlCode::kNotFound);
  EXPECT_NE(status.message().find("descriptor 1"), std::string::npos) << status.message();
}

TEST_F(ResolvedTest, StridedRowsMayLieInSeveralRegistrations) {
  add(own.address(0), 64);
  add(own.address(64), 64);
  ASSERT_TRUE(resolve<StridedDesc>({{.addr = own.address(0), .len = 8, .dev = 0, .stride = 16, .count = 8}}).ok());
  EXPECT_EQ(out.rows.count(), 8u);
  EXPECT_EQ(out.locals.size(), 2u);
  const Status none = resolve<StridedDesc>({{.addr = own.address(0), .len = 8, .dev = 0, .stride = 16, .count = 0}});
  EXPECT_EQ(code_of(none), NixlCode::kInvalidParam);
}

TEST_F(ResolvedTest, TheAgentsOwnOtherSideHasOffsets) {
  add(own.address(64), 64);
  const std::vector<Desc> list = {at(72, 8)};
  out.peer = own.agent.self();
  ASSERT_TRUE(resolve_own("call", book.book(), std::span<const Desc>(list), out).ok());
  EXPECT_TRUE(out.locals.empty());
  ASSERT_EQ(out.remotes.size(), 1u);
  EXPECT_EQ(out.rows.at(0).offset, 8u);
}

/// A peer of whose memory one region is known.
struct JoinedTest : ResolvedTest {
  JoinedTest() : theirs(own.agent.add_region({.name = "x", .bytes = own.memory}).value()) {
    other_region = other.agent.add_region({.name = "y", .bytes = other.memory}).value();
    remote.emplace(own.peer(other));
    const wire::Card card = other.card();
    const wire::CardRegion& told = card.regions.front();
    const std::vector<BlobEntry> entries = {
        {.type = MemType::kDram, .region = told.index, .desc = {.addr = 1 << 20, .len = 4096, .dev = 0}}};
    remote->enter({.entries = entries,
                   .ids = {{.index = told.index, .generation = told.generation, .key = told.key}},
                   .revision = 1},
                  {});
  }
  std::optional<JoinedLists> join(std::vector<Desc> from, std::vector<Desc> to, BackendMask backends = kAllBackends) {
    XferDescList local(MemType::kDram), remote_list(MemType::kDram);
    for (const Desc& desc : from) local.add(desc.addr, desc.len);
    for (const Desc& desc : to) remote_list.add(desc.addr, desc.len);
    return join_lists(book.book(), local, *remote, remote_list, backends);
  }
  static Desc there(std::uint64_t offset, std::uint64_t len) {
    return {.addr = (1 << 20) + offset, .len = len, .dev = 0};
  }

  Region theirs;
  TestAgent other{"b"};
  Region other_region;
  std::optional<Remote> remote;
};

TEST_F(JoinedTest, NeighboursOnBothSidesBecomeOnePiece) {
  add(own.address(0), 64);
  const auto joined = join({at(0, 8), at(8, 8), at(32, 8)}, {there(100, 8), there(108, 8), there(0, 8)});
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->made.pieces.pair_count, 3u);
  EXPECT_EQ(joined->made.pieces.bytes, 24u);
  ASSERT_EQ(joined->made.pieces.groups.size(), 1u);
  EXPECT_EQ(joined->made.pieces.groups.front().count, 2u);
}

TEST_F(JoinedTest, WhatIsNotOfThisKindIsLeftToOthers) {
  add(own.address(0), 64, 2);
  EXPECT_FALSE(join({at(0, 8)}, {there(0, 9)}).has_value()) << "lengths differ";
  EXPECT_FALSE(join({at(0, 0)}, {there(0, 0)}).has_value()) << "no bytes";
  EXPECT_FALSE(join({at(60, 8)}, {there(0, 8)}).has_value()) << "not registered";
  EXPECT_FALSE(join({at(0, 8)}, {there(4090, 8)}).has_value()) << "not all there";
  EXPECT_FALSE(join({at(0, 8)}, {there(0, 8)}, 1).has_value()) << "no backend can both";
  EXPECT_TRUE(join({at(0, 8)}, {there(0, 8)}, 2).has_value());
}

}  // namespace
}  // namespace hawser::compat
