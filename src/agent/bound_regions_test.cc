#include "agent/bound_regions.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

using Id = BoundRegions::Id;

std::shared_ptr<const RemoteRegion> handle_of(Id id) {
  auto made = std::make_shared<RemoteRegion>();
  made->index = id.first;
  made->generation = id.second;
  return made;
}

struct BoundRegionsTest : testing::Test {
  BoundRegions bound;
  std::vector<Id> unbound;
  void let_go() {
    bound.let_go([this](Id id) { unbound.push_back(id); });
  }
  void let_go_granted() {
    bound.let_go_granted([this](Id id) { unbound.push_back(id); });
  }
  static std::shared_ptr<const RemoteRegion> grant_of(Id id) {
    auto made = std::make_shared<RemoteRegion>(*handle_of(id));
    made->grant.emplace();
    return made;
  }
  void load_card_of(std::vector<Id> named) {
    bound.condemn_unless([&](Id id) { return std::ranges::find(named, id) != named.end(); });
  }
};

TEST_F(BoundRegionsTest, WhatTheCardNamesStaysWithoutHandles) {
  bound.add(handle_of({1, 0}));
  load_card_of({{1, 0}});
  let_go();
  EXPECT_TRUE(unbound.empty());
  EXPECT_EQ(bound.size(), 1U);
  load_card_of({{1, 1}});  // Another region that came to the same index.
  let_go();
  EXPECT_EQ(unbound, (std::vector<Id>{{1, 0}}));
  EXPECT_EQ(bound.size(), 0U);
}

// Each card pays for a part of a look at all, so that small cards cost the same however many regions are bound.
TEST_F(BoundRegionsTest, ALookAtAllIsDueAfterAsMuchNewsAsIsBound) {
  for (std::uint32_t i = 0; i < 10; ++i) bound.add(handle_of({i, 0}));
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(bound.is_look_due(1)) << i;
  EXPECT_TRUE(bound.is_look_due(1));
  EXPECT_FALSE(bound.is_look_due(1));
  EXPECT_TRUE(bound.is_look_due(9));
}

TEST_F(BoundRegionsTest, AHandleKeepsWhatIsGone) {
  auto handle = handle_of({1, 0});
  bound.add(handle);
  bound.add(handle_of({2, 0}));
  load_card_of({});
  let_go();
  EXPECT_EQ(unbound, (std::vector<Id>{{2, 0}}));
  EXPECT_TRUE(bound.is_waiting());
  handle.reset();
  let_go();
  EXPECT_EQ(unbound, (std::vector<Id>{{2, 0}, {1, 0}}));
  EXPECT_FALSE(bound.is_waiting());
}

TEST_F(BoundRegionsTest, ANewHandleTakesTheOldOnesPlace) {
  bound.add(handle_of({1, 0}));
  const auto handle = handle_of({1, 0});
  bound.add(handle);
  bound.add(handle);
  bound.condemn({1, 0});
  bound.condemn({7, 7});
  let_go();
  EXPECT_TRUE(unbound.empty());
  EXPECT_EQ(bound.size(), 1U);
}

/// As a forged card may do: all handles must be gone, whichever of them a plan holds.
TEST_F(BoundRegionsTest, TwoHandlesOfOneRegionBothHoldIt) {
  auto older = handle_of({1, 0}), newer = handle_of({1, 0});
  bound.add(older);
  bound.add(newer);
  bound.condemn({1, 0});
  older.reset();
  let_go();
  EXPECT_TRUE(unbound.empty());
  newer.reset();
  let_go();
  EXPECT_EQ(unbound, (std::vector<Id>{{1, 0}}));
}

TEST_F(BoundRegionsTest, BoundAgainAfterItWasCondemned) {
  auto older = handle_of({1, 0}), newer = handle_of({1, 0});
  bound.add(older);
  load_card_of({});
  bound.add(newer);  // A plan that was made before takes another path.
  older.reset();
  let_go();
  EXPECT_TRUE(unbound.empty());
  load_card_of({});
  let_go();
  EXPECT_TRUE(unbound.empty());
  newer.reset();
  let_go();
  EXPECT_EQ(unbound, (std::vector<Id>{{1, 0}}));
}

TEST_F(BoundRegionsTest, AGrantGoesWithItsLastHandleThoughNoCardComes) {
  auto grant = grant_of({5, 1});
  bound.add(grant);
  bound.add(grant);
  EXPECT_EQ(bound.size(), 1u);
  EXPECT_TRUE(bound.is_waiting());
  let_go_granted();
  EXPECT_TRUE(unbound.empty());
  load_card_of({});
  EXPECT_EQ(bound.size(), 1u) << "no card names a grant";
  grant.reset();
  let_go_granted();
  EXPECT_EQ(unbound, (std::vector<Id>{{5, 1}}));
  EXPECT_FALSE(bound.is_waiting());
}

TEST_F(BoundRegionsTest, ACardLooksAtNoGrants) {
  bound.add(grant_of({5, 1}));
  bound.add(handle_of({6, 1}));
  load_card_of({});
  let_go();
  EXPECT_EQ(unbound, (std::vector<Id>{{6, 1}}));
  EXPECT_TRUE(bound.is_waiting());
  let_go_granted();
  EXPECT_EQ(unbound, (std::vector<Id>{{6, 1}, {5, 1}}));
}

/// As a forged card may do.
TEST_F(BoundRegionsTest, AGrantThatACardNamesToo) {
  auto grant = grant_of({5, 1});
  bound.add(grant);
  bound.add(handle_of({5, 1}));
  load_card_of({});
  let_go();
  EXPECT_TRUE(unbound.empty()) << "it is the grant's, too";
  grant.reset();
  let_go_granted();
  EXPECT_EQ(unbound, (std::vector<Id>{{5, 1}}));
}

}  // namespace
}  // namespace hawser::agent
