#include "agent/card_store.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

wire::CardRegion region(std::uint32_t index, std::uint32_t generation, std::string_view name) {
  wire::CardRegion made;
  made.index = index;
  made.generation = generation;
  made.size = 100 + index;
  made.name = name;
  return made;
}

wire::Card card(wire::CardKind kind, std::uint64_t revision, std::vector<wire::CardRegion> regions) {
  wire::Card made;
  made.kind = kind;
  made.name = "peer";
  made.revision = revision;
  made.backends = {{.name = "tcp", .address = "here"}};
  made.regions = std::move(regions);
  return made;
}

TEST(CardStore, AFullCardReplacesAllAndAnOlderOneNothing) {
  auto store = CardStore::merge(nullptr, card(wire::CardKind::kFull, 5, {region(1, 0, "a"), region(4, 0, "b")}));
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->find(4)->name, "b");
  EXPECT_EQ((*store)->find(2), nullptr);
  EXPECT_EQ((*store)->find_name("a")->index, 1u);
  EXPECT_EQ(*(*store)->address_of("tcp"), "here");
  EXPECT_EQ((*store)->address_of("shm"), nullptr);
  auto older = CardStore::merge(*store, card(wire::CardKind::kFull, 4, {}));
  ASSERT_TRUE(older);
  EXPECT_EQ(*older, *store);
  auto newer = CardStore::merge(*store, card(wire::CardKind::kFull, 6, {region(2, 0, "c")}));
  ASSERT_TRUE(newer);
  EXPECT_EQ((*newer)->find(1), nullptr);
  EXPECT_NE((*newer)->find(2), nullptr);
}

TEST(CardStore, ADeltaRemovesThenAdds) {
  auto store = CardStore::merge(nullptr, card(wire::CardKind::kFull, 5, {region(1, 0, "a"), region(4, 0, "b")}));
  wire::Card delta = card(wire::CardKind::kDelta, 7, {region(3, 0, "c"), region(4, 1, "b2")});
  delta.base_revision = 5;
  delta.removed = {{.index = 1, .generation = 0}, {.index = 4, .generation = 0}};
  auto merged = CardStore::merge(*store, std::move(delta));
  ASSERT_TRUE(merged) << merged.error().to_string();
  EXPECT_EQ((*merged)->revision(), 7u);
  EXPECT_EQ((*merged)->find(1), nullptr);
  EXPECT_EQ((*merged)->find(3)->name, "c");
  EXPECT_EQ((*merged)->find(4)->generation, 1u);
  EXPECT_TRUE((*merged)->complete());
}

TEST(CardStore, ADeltaOnWhatIsNotKnownAsksForAFullCard) {
  wire::Card delta = card(wire::CardKind::kDelta, 7, {});
  delta.base_revision = 5;
  EXPECT_EQ(CardStore::merge(nullptr, std::move(delta)).error().code(), Code::kNotFound);
  wire::Card ahead = card(wire::CardKind::kDelta, 9, {});
  ahead.base_revision = 8;
  auto store = CardStore::merge(nullptr, card(wire::CardKind::kFull, 7, {}));
  EXPECT_EQ(CardStore::merge(*store, std::move(ahead)).error().code(), Code::kNotFound);
}

TEST(CardStore, APartialCardAddsAndIsNotComplete) {
  auto store = CardStore::merge(nullptr, card(wire::CardKind::kPartial, 5, {region(4, 0, "b")}));
  ASSERT_TRUE(store);
  EXPECT_FALSE((*store)->complete());
  auto more = CardStore::merge(*store, card(wire::CardKind::kPartial, 5, {region(1, 0, "a")}));
  ASSERT_TRUE(more);
  EXPECT_EQ((*more)->regions().size(), 2u);
  EXPECT_EQ((*more)->regions()[0].index, 1u);
}

}  // namespace
}  // namespace hawser::agent
