#include "agent/card_store.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <map>
#include <set>

#include "base/rng.h"

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

std::vector<std::uint32_t> indices(const CardStore& store) {
  std::vector<std::uint32_t> all;
  store.for_each([&](const wire::CardRegion& region) { all.push_back(region.index); });
  return all;
}

TEST(CardStore, AFullCardReplacesAllAndAnOlderOneNothing) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 5, {region(1, 0, "a"), region(4, 0, "b")})));
  EXPECT_EQ(store.find(4)->name, "b");
  EXPECT_EQ(store.find(2), nullptr);
  EXPECT_EQ(store.find_name("a")->index, 1u);
  EXPECT_EQ(*store.address_of("tcp"), "here");
  EXPECT_EQ(store.address_of("shm"), nullptr);
  const auto older = store.take(card(wire::CardKind::kFull, 4, {}));
  ASSERT_TRUE(older);
  EXPECT_FALSE(older->any);
  EXPECT_EQ(store.count(), 2u);
  const auto newer = store.take(card(wire::CardKind::kFull, 6, {region(2, 0, "c")}));
  ASSERT_TRUE(newer);
  EXPECT_TRUE(newer->any && newer->is_whole);
  EXPECT_EQ(store.find(1), nullptr);
  EXPECT_NE(store.find(2), nullptr);
  EXPECT_EQ(store.find_name("a"), nullptr);
}

TEST(CardStore, TheSameFullCardAgainChangesNothing) {
  CardStore store;
  const auto again = [&] { return store.take(card(wire::CardKind::kFull, 5, {region(1, 0, "a"), region(4, 0, "b")})); };
  EXPECT_TRUE(again()->any);
  EXPECT_FALSE(again()->any);
  const std::uint64_t changes = store.changes();
  EXPECT_TRUE(store.take(card(wire::CardKind::kFull, 5, {region(1, 0, "a"), region(4, 0, "other")}))->any)
      << "one that was forged came first";
  EXPECT_GT(store.changes(), changes);
}

TEST(CardStore, ADeltaRemovesThenAdds) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 5, {region(1, 0, "a"), region(4, 0, "b")})));
  wire::Card delta = card(wire::CardKind::kDelta, 7, {region(3, 0, "c"), region(4, 1, "b2")});
  delta.base_revision = 5;
  delta.removed = {{.index = 1, .generation = 0}, {.index = 4, .generation = 0}};
  const auto change = store.take(std::move(delta));
  ASSERT_TRUE(change) << change.error().to_string();
  EXPECT_EQ(std::set(change->gone.begin(), change->gone.end()), (std::set<CardStore::Id>{{1, 0}, {4, 0}}));
  EXPECT_EQ(store.revision(), 7u);
  EXPECT_EQ(store.find(1), nullptr);
  EXPECT_EQ(store.find(3)->name, "c");
  EXPECT_EQ(store.find(4)->generation, 1u);
  EXPECT_TRUE(store.complete());
}

TEST(CardStore, ADeltaOnWhatIsNotKnownAsksForAFullCard) {
  CardStore store;
  wire::Card delta = card(wire::CardKind::kDelta, 7, {});
  delta.base_revision = 5;
  EXPECT_EQ(store.take(std::move(delta)).error().code(), Code::kNotFound);
  wire::Card ahead = card(wire::CardKind::kDelta, 9, {});
  ahead.base_revision = 8;
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 7, {})));
  EXPECT_EQ(store.take(std::move(ahead)).error().code(), Code::kNotFound);
}

TEST(CardStore, APartialCardAddsAndIsNotComplete) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kPartial, 5, {region(4, 0, "b")})));
  EXPECT_FALSE(store.complete());
  ASSERT_TRUE(store.take(card(wire::CardKind::kPartial, 5, {region(1, 0, "a")})));
  EXPECT_EQ(indices(store), (std::vector<std::uint32_t>{1, 4}));
}

TEST(CardStore, APartialCardHidesNothingThatCameBeforeIt) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 5, {region(1, 0, "a")})));
  ASSERT_TRUE(store.take(card(wire::CardKind::kPartial, 8, {region(4, 0, "d")})));
  EXPECT_TRUE(store.complete());
  EXPECT_EQ(store.revision(), 5u) << "of what else came until 8 nothing is known";
  EXPECT_EQ(store.find(4)->name, "d");
  wire::Card delta = card(wire::CardKind::kDelta, 6, {region(2, 0, "b")});
  delta.base_revision = 5;
  ASSERT_TRUE(store.take(std::move(delta)));
  ASSERT_NE(store.find(2), nullptr);
  EXPECT_NE(store.find(4), nullptr);
  wire::Card ahead = card(wire::CardKind::kDelta, 9, {});
  ahead.base_revision = 8;
  EXPECT_EQ(store.take(std::move(ahead)).error().code(), Code::kNotFound);
}

TEST(CardStore, APartialCardThatIsNotNewerThanTheWholeChangesNothing) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 8, {region(1, 1, "new")})));
  for (const std::uint64_t revision : {5U, 8U}) {
    const auto same = store.take(card(wire::CardKind::kPartial, revision, {region(1, 0, "old"), region(2, 3, "gone")}));
    ASSERT_TRUE(same);
    EXPECT_FALSE(same->any) << revision;
    EXPECT_EQ(store.find(1)->name, "new");
    EXPECT_EQ(store.find(2), nullptr) << "it was removed before 8";
  }
}

TEST(CardStore, OfPartialCardsTheHigherGenerationWinsInAnyOrder) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kPartial, 8, {region(1, 2, "new")})));
  EXPECT_FALSE(store.take(card(wire::CardKind::kPartial, 5, {region(1, 1, "old")}))->any);
  EXPECT_EQ(store.find(1)->name, "new");
  const auto change = store.take(card(wire::CardKind::kPartial, 9, {region(1, 3, "newer")}));
  EXPECT_EQ(change->gone, (std::vector<CardStore::Id>{{1, 2}}));
  EXPECT_EQ(store.find(1)->name, "newer");
}

TEST(CardStore, AFullCardThatIsOlderThanAPartialOneKeepsWhatThatTold) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kPartial, 9, {region(1, 3, "new"), region(6, 0, "later")})));
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 7, {region(1, 2, "old"), region(2, 0, "b")})));
  EXPECT_TRUE(store.complete());
  EXPECT_EQ(store.revision(), 7u);
  EXPECT_EQ(store.find(1)->name, "new");
  EXPECT_NE(store.find(6), nullptr);
  EXPECT_NE(store.find(2), nullptr);
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 10, {region(2, 0, "b")})));
  EXPECT_EQ(indices(store), (std::vector<std::uint32_t>{2}));
}

TEST(CardStore, AnOlderCardChangesNoAddress) {
  CardStore store;
  const auto at = [](std::string address, std::uint64_t revision, wire::CardKind kind) {
    wire::Card made = card(kind, revision, {});
    made.backends = {{.name = "tcp", .address = std::move(address)}};
    return made;
  };
  ASSERT_TRUE(store.take(at("new", 9, wire::CardKind::kPartial)));
  EXPECT_FALSE(store.take(at("old", 5, wire::CardKind::kPartial))->any);
  EXPECT_EQ(*store.address_of("tcp"), "new");
  ASSERT_TRUE(store.take(at("old", 8, wire::CardKind::kFull)));
  EXPECT_EQ(*store.address_of("tcp"), "new");
  EXPECT_TRUE(store.take(at("newest", 10, wire::CardKind::kPartial))->any);
  EXPECT_EQ(*store.address_of("tcp"), "newest");
}

wire::Card with_extra(std::uint64_t revision, std::uint32_t index, std::vector<std::string_view> backends,
                      std::string_view of, std::string_view bytes) {
  wire::Card made = card(wire::CardKind::kPartial, revision, {region(index, 0, "")});
  made.backends.clear();
  for (const std::string_view name : backends) {
    if (name == of) made.extras.push_back({static_cast<std::uint32_t>(made.backends.size()), bytes});
    made.backends.push_back({.name = std::string(name), .address = "x"});
  }
  made.regions[0].extra_count = 1;
  return made;
}

TEST(CardStore, ExtrasAreThoseOfTheBackendThatTheirOwnCardNames) {
  CardStore store;
  ASSERT_TRUE(store.take(with_extra(5, 1, {"tcp", "verbs"}, "verbs", "rkey")));
  ASSERT_TRUE(store.take(with_extra(6, 2, {"verbs", "tcp"}, "verbs", "other")));
  EXPECT_EQ(store.extra(*store.find(1), "verbs"), "rkey");
  EXPECT_EQ(store.extra(*store.find(1), "tcp"), "");
  EXPECT_EQ(store.extra(*store.find(2), "verbs"), "other");
  for (std::uint32_t i = 0; i < 200; ++i)
    ASSERT_TRUE(store.take(with_extra(7 + i, 10 + i, {"tcp", "verbs"}, "tcp", "t")));
  EXPECT_EQ(store.extra(*store.find(1), "verbs"), "rkey") << "after all became one list";
  EXPECT_EQ(store.extra(*store.find(100), "tcp"), "t");
}

TEST(CardStore, OfTwoRegionsOfANameTheOneToldLastIsFound) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kPartial, 8, {region(7, 0, "kv")})));
  EXPECT_EQ(store.find_name("kv")->index, 7u);
  ASSERT_TRUE(store.take(card(wire::CardKind::kPartial, 5, {region(3, 0, "kv")})));
  EXPECT_EQ(store.find_name("kv")->index, 7u) << "an old card";
  ASSERT_TRUE(store.take(card(wire::CardKind::kPartial, 9, {region(7, 1, "other")})));
  EXPECT_EQ(store.find_name("kv")->index, 3u);
  EXPECT_EQ(store.find_name("other")->index, 7u);
}

/// An owner whose regions come and go, and that hands out copies which are kept.
class Owner {
 public:
  explicit Owner(std::uint64_t seed) : rng_(seed) {}

  void step() {
    ++revision_;
    const auto index = static_cast<std::uint32_t>(rng_.below(24));
    if (open_.erase(index) == 0) open_[index] = ++generations_[index];
    history_[revision_] = open_;
  }
  wire::Card copy() {
    const auto kind = rng_.chance(0.4) ? wire::CardKind::kFull : wire::CardKind::kPartial;
    std::vector<wire::CardRegion> regions;
    for (const auto& [index, generation] : open_) {
      if (kind == wire::CardKind::kFull || rng_.chance(0.3)) regions.push_back(region(index, generation, ""));
    }
    return card(kind, revision_, std::move(regions));
  }
  const std::map<std::uint32_t, std::uint32_t>& at(std::uint64_t revision) { return history_[revision]; }
  std::uint32_t newest_of(std::uint32_t index) { return generations_[index]; }
  base::Rng& rng() { return rng_; }

 private:
  base::Rng rng_;
  std::uint64_t revision_ = 0;
  std::map<std::uint32_t, std::uint32_t> open_, generations_;
  std::map<std::uint64_t, std::map<std::uint32_t, std::uint32_t>> history_;
};

wire::Card again(const wire::Card& from) { return card(from.kind, from.revision, from.regions); }

// Whatever the order, what is known in the end is what the newest full card has, and what partial cards told later: the
// newest generation of each index that any of them told.
TEST(CardStore, CopiesInAnyOrderEndInTheSameState) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Owner owner(seed);
    std::vector<wire::Card> copies;
    for (int i = 0; i < 40; ++i) {
      owner.step();
      copies.push_back(owner.copy());
    }
    std::uint64_t whole = 0;
    for (const wire::Card& each : copies) {
      if (each.kind == wire::CardKind::kFull) whole = std::max(whole, each.revision);
    }
    std::map<std::uint32_t, std::uint32_t> wanted;
    if (whole > 0) wanted = owner.at(whole);
    for (const wire::Card& each : copies) {
      if (each.revision <= whole) continue;
      for (const wire::CardRegion& one : each.regions) {
        wanted[one.index] = std::max(wanted[one.index], one.generation);
      }
    }
    for (int order = 0; order < 3; ++order) {
      owner.rng().shuffle(copies);
      CardStore store;
      for (const wire::Card& each : copies) ASSERT_TRUE(store.take(again(each)));
      std::map<std::uint32_t, std::uint32_t> got;
      store.for_each([&](const wire::CardRegion& one) { got[one.index] = one.generation; });
      ASSERT_EQ(got, wanted) << "seed " << seed << " order " << order;
      ASSERT_EQ(store.count(), got.size());
    }
  }
}

// Of 20,000 regions that came and went, a few are open: what is kept, and what a small card costs, is of those.
TEST(CardStore, RegionsThatAreClosedLeaveIt) {
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 1, {region(0, 0, "stays")})));
  const auto churn = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t revision = from; revision < to; ++revision) {
      wire::Card delta =
          card(wire::CardKind::kDelta, revision + 1, {region(static_cast<std::uint32_t>(revision), 0, "comes")});
      delta.base_revision = revision;
      if (revision > 1) delta.removed = {{.index = static_cast<std::uint32_t>(revision - 1), .generation = 0}};
      ASSERT_TRUE(store.take(std::move(delta)));
    }
  };
  churn(1, 2000);
  const std::size_t before = ::mallinfo2().uordblks;
  churn(2000, 20000);
  EXPECT_LT(::mallinfo2().uordblks, before + 64U * 1024);
  EXPECT_EQ(store.count(), 2u);
  EXPECT_EQ(indices(store), (std::vector<std::uint32_t>{0, 19999}));
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
  CardStore store;
  ASSERT_TRUE(store.take(card(wire::CardKind::kFull, 1, {region(1, 0, "stays")})));
  std::uint64_t revision = 1;
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i, ++revision) {
      const auto generation = static_cast<std::uint32_t>(revision - 1);
      const std::string text = "a name as users give them: " + std::to_string(revision) + "extra";
      const auto change = store.take(delta_with_text(revision + 1, 4, generation, text));
      ASSERT_TRUE(change) << change.error().to_string();
    }
  };
  come_and_go(1000);
  const std::size_t before = ::mallinfo2().uordblks;
  come_and_go(5000);
  const std::size_t after = ::mallinfo2().uordblks;
  EXPECT_LT(after, before + 64U * 1024);
  EXPECT_EQ(store.find(4)->name, "a name as users give them: 6000");
  EXPECT_EQ(store.extra(*store.find(4), "tcp"), "extra");
  EXPECT_EQ(store.find(1)->name, "stays");
  EXPECT_EQ(store.count(), 2U);
}

}  // namespace
}  // namespace hawser::agent
