// Cards: full, partial and delta; old, foreign and broken ones.

#include <algorithm>

#include "agent_suite.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "wire/card.h"

namespace hawser::conformance {
namespace {

std::vector<std::string> sorted_names(const Peer& peer) {
  std::vector<std::string> names = peer.region_names();
  std::ranges::sort(names);
  return names;
}
using Names = std::vector<std::string>;

TEST_P(Conformance, ACardTellsAllRegions) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  EXPECT_TRUE(a_to_b().region_names().empty());
  Area one = add(b(), "one", 100), two = add(b(), "two", 200, Rights::kRead), nameless = add(b(), "", 300);
  const Peer peer = a_to_b();
  EXPECT_EQ(sorted_names(peer), (Names{"#2", "one", "two"}));
  EXPECT_EQ(must(peer.region("one")).size, 100U);
  EXPECT_EQ(must(peer.region(1)).size, 200U);
  EXPECT_EQ(must(peer.region(2)).size, 300U);
  must(one.region.close(0s));
  EXPECT_EQ(sorted_names(a_to_b()), (Names{"#2", "two"}));
}

TEST_P(Conformance, DeltasBuildOnWhatIsKnown) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area one = add(b(), "one", 100);
  (void)a_to_b();
  std::uint64_t known = b().card_revision();
  Area two = add(b(), "two", 200);
  EXPECT_GT(b().card_revision(), known);
  const std::string delta = must(b().card_delta(known));
  EXPECT_EQ(must(wire::check_card(base::as_bytes(delta))).kind, wire::CardKind::kDelta);
  const Peer peer = must(a().add_peer(delta));
  EXPECT_EQ(sorted_names(peer), (Names{"one", "two"}));
  known = b().card_revision();
  must(one.region.close(0s));
  Area three = add(b(), "three", 300);
  EXPECT_EQ(sorted_names(must(a().add_peer(must(b().card_delta(known))))), (Names{"three", "two"}));
  // Once more changes nothing, and so does an old one.
  EXPECT_EQ(sorted_names(must(a().add_peer(must(b().card_delta(known))))), (Names{"three", "two"}));
  EXPECT_EQ(sorted_names(must(a().add_peer(delta))), (Names{"three", "two"}));
  Area source = add(a(), "source", 300);
  fill(source.bytes, 1);
  must(run(must(a().plan_write(peer, {{source.range(0, 300)}}, {{peer.range("three", 0, 300)}}))));
  EXPECT_TRUE(holds(three.bytes, 1));
}

TEST_P(Conformance, ADeltaWithoutItsBaseIsRefused) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area one = add(b(), "one", 100);
  const std::uint64_t known = b().card_revision();
  Area two = add(b(), "two", 200);
  EXPECT_TRUE(says(a().add_peer(must(b().card_delta(known))).error(), Code::kNotFound, {"full card"}));
  EXPECT_TRUE(a().add_peer(must(b().card())).error().ok());
}

TEST_P(Conformance, ADeltaTooOldIsAFullCard) {
  open_pair();
  Area one = add(b(), "one", 100);
  const std::string card = must(b().card_delta(0));
  EXPECT_EQ(must(wire::check_card(base::as_bytes(card))).kind, wire::CardKind::kFull);
}

TEST_P(Conformance, APartialCardTellsSome) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area one = add(b(), "one", 100), two = add(b(), "two", 200), three = add(b(), "three", 300);
  const std::uint32_t some[] = {2, 0};
  const Peer peer = must(a().add_peer(must(b().partial_card(some))));
  EXPECT_EQ(sorted_names(peer), (Names{"one", "three"}));
  Area source = add(a(), "source", 300);
  fill(source.bytes, 1);
  must(run(must(a().plan_write(peer, {{source.range(0, 300)}}, {{peer.range("three", 0, 300)}}))));
  EXPECT_TRUE(holds(three.bytes, 1));
  const std::uint32_t more[] = {1};
  EXPECT_EQ(sorted_names(must(a().add_peer(must(b().partial_card(more))))), (Names{"one", "three", "two"}));
  EXPECT_EQ(sorted_names(a_to_b()), (Names{"one", "three", "two"}));
  const std::uint32_t wrong[] = {0, 99};
  EXPECT_TRUE(says(b().partial_card(wrong).error(), Code::kNotFound, {"partial_card", "#99"}));
}

/// What the agent hears of the peer's regions once the session stands: no card is loaded for it.
bool comes_to_know(Environment& env, const Peer& peer, const Names& names) {
  return env.eventually([&] { return sorted_names(peer) == names; });
}

// The card is the newest there is, so the session begins with nothing to ask for.
TEST_P(Conformance, ASessionTellsOfChanges) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area one = add(b(), "one", 100);
  const Peer peer = meet();
  while (a().take_event()) continue;
  Area late = add(b(), "late", 300);
  ASSERT_TRUE(comes_to_know(env(), peer, {"late", "one"}));
  // A driver tells of it just after the card is there.
  const auto is_told = [&] {
    const std::optional<PeerEvent> event = a().take_event();
    return event && event->kind == PeerEvent::Kind::kCardChanged;
  };
  EXPECT_TRUE(env().eventually(is_told));
  Area source = add(a(), "source", 300);
  fill(source.bytes, 1);
  must(run(must(a().plan_write(peer, {{source.range(0, 300)}}, {{peer.range("late", 0, 300)}}))));
  EXPECT_TRUE(holds(late.bytes, 1));
  must(one.region.close(0s));
  EXPECT_TRUE(comes_to_know(env(), peer, {"late"}));
  EXPECT_EQ(must(peer.region("late")).size, 300U);
  // b was told of "source", too: it loaded the card of a.
  const std::vector<Peer> others = b().peers();
  ASSERT_EQ(others.size(), 1U);
  EXPECT_TRUE(comes_to_know(env(), others[0], {"source"}));
  EXPECT_EQ(core_of(must(a().find_peer("b", 0s))), core_of(peer)) << "there is nothing newer to look for";
}

// A partial card that came by other means overtakes what the session tells: that is heard of all the same.
TEST_P(Conformance, APartialCardHidesNoChange) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area one = add(b(), "one", 100);
  const Peer peer = meet();
  Area two = add(b(), "two", 100), three = add(b(), "three", 100);
  const std::uint32_t index = three.region.index();
  must(a().add_peer(must(b().partial_card({&index, 1}))));
  EXPECT_TRUE(comes_to_know(env(), peer, {"one", "three", "two"}));
  must(two.region.close(0s));
  EXPECT_TRUE(comes_to_know(env(), peer, {"one", "three"}));
}

// Who was met by the other loads its card afterwards; a card that is loaded later is followed as one before.
TEST_P(Conformance, ACardLoadedInASessionIsFollowed) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  const Peer to_b = a_to_b();
  Status connected;
  env().blocking(a(), [&] { connected = to_b.connect(kPatience); });
  must(connected);
  ASSERT_TRUE(env().eventually([&] { return b().peers().size() == 1 && b().peers()[0].state() == PeerState::kUp; }));
  Area one = add(a(), "one", 100);
  pass(20);
  const Peer to_a = b_to_a();
  EXPECT_EQ(sorted_names(to_a), (Names{"one"}));
  Area late = add(a(), "late", 100);
  EXPECT_TRUE(comes_to_know(env(), to_a, {"late", "one"}));
}

// Many changes at once are few messages, and the last of them is heard of.
TEST_P(Conformance, ManyChangesAreAllHeardOf) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area first = add(b(), "first", 100);
  const Peer peer = meet();
  constexpr std::size_t kRegions = 1000;
  std::vector<std::byte> memory(kRegions * 64);
  std::vector<Region> all;
  for (std::size_t i = 0; i < kRegions; ++i) {
    all.push_back(must(b().add_region({.name = "", .bytes = std::span(memory).subspan(i * 64, 64), .device = {}})));
  }
  EXPECT_TRUE(env().eventually([&] { return peer.region_names().size() == kRegions + 1; }));
  all.resize(kRegions / 2);
  EXPECT_TRUE(env().eventually([&] { return peer.region_names().size() == kRegions / 2 + 1; }));
}

TEST_P(Conformance, AnOldCardUndoesNothing) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area one = add(b(), "one", 100);
  const std::string old = must(b().card());
  Area two = add(b(), "two", 200);
  (void)a_to_b();
  EXPECT_EQ(sorted_names(must(a().add_peer(old))), (Names{"one", "two"}));
}

TEST_P(Conformance, BrokenCardsAreRefused) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area one = add(b(), "one", 100), two = add(b(), "two", 200);
  const std::string good = must(b().card());
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    const Status status = a().add_peer(std::string_view(good).substr(0, cut)).error();
    ASSERT_EQ(status.code(), Code::kCorrupt) << cut << ": " << status.to_string();
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    const Status status = a().add_peer(bad).error();
    ASSERT_TRUE(status.code() == Code::kCorrupt || status.code() == Code::kUnsupported)
        << at << ": " << status.to_string();
  }
  EXPECT_EQ(a().add_peer(good + "x").error().code(), Code::kCorrupt);
  EXPECT_EQ(a().add_peer(std::string(100'000, 'x')).error().code(), Code::kCorrupt);
  EXPECT_TRUE(a().peers().empty());
  (void)a_to_b();
}

// Terminals and logs show errors: what a card says may neither move their cursor nor begin a line of its own.
TEST_P(Conformance, WhatACardSaysIsQuotedWithoutItsControls) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area one = add(b(), "one", 100);
  wire::Card card = must(wire::decode_card(base::as_bytes(must(b().card()))));
  const std::string evil = "\x1b[2J\nall is well\x9b";
  for (wire::CardBackend& each : card.backends) each.address = evil + std::string(1500, 'x');
  card.regions[0].name = evil;
  const Peer peer = must(a().add_peer(must(wire::encode(card))));
  const auto harmless = [](const Status& status) {
    const std::string text = status.to_string();
    const bool good = !status.ok() && text.size() < 1500 &&
                      std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c != 0x7f && c != 0x9b; });
    return (good ? testing::AssertionSuccess() : testing::AssertionFailure()) << text;
  };
  EXPECT_TRUE(harmless(peer.region("two").error()));
  EXPECT_TRUE(harmless(peer.table(evil, StridedRange{.offset = 1000, .size = 1}).status()));
  Status connected;
  env().blocking(a(), [&] { connected = peer.connect(kPatience); });
  EXPECT_TRUE(harmless(connected));
}

TEST_P(Conformance, AnIncompatibleVersionIsNamed) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  wire::Card card = must(wire::decode_card(base::as_bytes(must(b().card()))));
  card.version_min = 900;
  card.version_max = 901;
  const Result<std::string> bytes = wire::encode(card);
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  EXPECT_TRUE(
      says(a().add_peer(*bytes).error(), Code::kUnsupported, {"900", "901", std::to_string(wire::kVersionMax)}));
  EXPECT_TRUE(a().peers().empty());
}

TEST_P(Conformance, ManyRegionsFitACard) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  constexpr std::size_t kRegions = 5000;
  std::vector<std::byte> memory(kRegions * 64);
  std::vector<Region> all;
  for (std::size_t i = 0; i < kRegions; ++i) {
    all.push_back(must(b().add_region({.name = "", .bytes = std::span(memory).subspan(i * 64, 64), .device = {}})));
  }
  const std::string card = must(b().card());
  // A NIC has a key of its own for each region.
  const std::size_t region_size = backend() == "verbs" ? 64 : 32;
  EXPECT_LE(card.size(), kRegions * region_size + 1024);
  const Peer peer = must(a().add_peer(card));
  EXPECT_EQ(peer.region_names().size(), kRegions);
  Area source = add(a(), "source", 64);
  fill(source.bytes, 1);
  RemoteRange last = must(peer.region(static_cast<std::uint32_t>(kRegions - 1)));
  must(run(must(a().plan_write(peer, {{source.range(0, 64)}}, {{last}}))));
  EXPECT_TRUE(holds(std::span(memory).last(64), 1));
}

}  // namespace
}  // namespace hawser::conformance
