#include "agent/card_store.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>

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

TEST(CardStore, APartialCardHidesNothingThatCameBeforeIt) {
  auto store = CardStore::merge(nullptr, card(wire::CardKind::kFull, 5, {region(1, 0, "a")}));
  store = CardStore::merge(*store, card(wire::CardKind::kPartial, 8, {region(4, 0, "d")}));
  ASSERT_TRUE(store);
  EXPECT_TRUE((*store)->complete());
  EXPECT_EQ((*store)->revision(), 5u) << "of what else came until 8 nothing is known";
  EXPECT_EQ((*store)->find(4)->name, "d");
  wire::Card delta = card(wire::CardKind::kDelta, 6, {region(2, 0, "b")});
  delta.base_revision = 5;
  store = CardStore::merge(*store, std::move(delta));
  ASSERT_TRUE(store);
  ASSERT_NE((*store)->find(2), nullptr);
  EXPECT_NE((*store)->find(4), nullptr);
  wire::Card ahead = card(wire::CardKind::kDelta, 9, {});
  ahead.base_revision = 8;
  EXPECT_EQ(CardStore::merge(*store, std::move(ahead)).error().code(), Code::kNotFound);
}

TEST(CardStore, APartialCardThatIsNotNewerThanTheWholeChangesNothing) {
  auto store = CardStore::merge(nullptr, card(wire::CardKind::kFull, 8, {region(1, 1, "new")}));
  for (const std::uint64_t revision : {5U, 8U}) {
    auto same = CardStore::merge(*store, card(wire::CardKind::kPartial, revision, {region(1, 0, "old")}));
    ASSERT_TRUE(same);
    EXPECT_EQ(*same, *store) << revision;
  }
}

/// A delta as it comes from the wire: it owns the text behind its views.
wire::Card delta_with_text(std::uint64_t revision, std::uint32_t index, std::uint32_t generation,
                           std::string_view text) {
  wire::Card delta = card(wire::CardKind::kDelta, revision, {region(index, generation, "")});
  delta.base_revision = revision - 1;
  if (generation > 0) delta.removed = {{.index = index, .generation = generation - 1}};
  delta.text = std::make_unique<char[]>(text.size());
  std::memcpy(delta.text.get(), text.data(), text.size());
  delta.regions[0].name = {delta.text.get(), text.size() - 5};
  delta.extras = {{.backend = 0, .bytes = {delta.text.get() + text.size() - 5, 5}}};
  delta.regions[0].extra_count = 1;
  return delta;
}

TEST(CardStore, RegionsThatComeAndGoLeaveNoText) {
  auto store = CardStore::merge(nullptr, card(wire::CardKind::kFull, 1, {region(1, 0, "stays")}));
  std::uint64_t revision = 1;
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i, ++revision) {
      const auto generation = static_cast<std::uint32_t>(revision - 1);
      const std::string text = "a name as users give them: " + std::to_string(revision) + "extra";
      store = CardStore::merge(*store, delta_with_text(revision + 1, 4, generation, text));
      ASSERT_TRUE(store) << store.error().to_string();
    }
  };
  come_and_go(1000);
  const std::size_t before = ::mallinfo2().uordblks;
  come_and_go(5000);
  const std::size_t after = ::mallinfo2().uordblks;
  EXPECT_LT(after, before + 64U * 1024);
  EXPECT_EQ((*store)->find(4)->name, "a name as users give them: 6000");
  EXPECT_EQ((*store)->extra(*(*store)->find(4), "tcp"), "extra");
  EXPECT_EQ((*store)->find(1)->name, "stays");
  EXPECT_EQ((*store)->regions().size(), 2U);
}

}  // namespace
}  // namespace hawser::agent
