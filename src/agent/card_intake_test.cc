#include "agent/card_intake.h"

#include <gtest/gtest.h>

#include "agent/test_lane.h"
#include "base/bytes.h"

namespace hawser::agent {
namespace {

class CardIntakeTest : public testing::Test, public CardIntake::Host {
 protected:
  void SetUp() override { peers_.open(std::make_shared<PeerCore>(std::weak_ptr<Core>(), "self", base::Id128{1, 1})); }

  // As the agent.
  void on_card_loaded(PeerCore& peer, const CardStore::Change& change) override {
    EXPECT_TRUE(lane_.is_locked);
    EXPECT_TRUE(change.any);
    told_of_ = &peer;
    ++told_;
  }
  void forget(const PeerCore& peer) override { peers_.forget(peer); }

  static wire::Card make_card(std::uint64_t number, std::uint64_t revision,
                              wire::CardKind kind = wire::CardKind::kFull) {
    wire::Card card;
    card.name = "p" + std::to_string(number);
    card.incarnation = {0, number};
    card.revision = revision;
    card.born = number;
    card.kind = kind;
    card.admission = {9, number};
    if (kind == wire::CardKind::kDelta) card.base_revision = revision - 1;
    return card;
  }

  TestLane lane_;
  PeerBook peers_{"self", 3};
  PeerCore* told_of_ = nullptr;
  int told_ = 0;
  CardIntake intake_{lane_, peers_, *this};
};

TEST_F(CardIntakeTest, ACardMakesItsPeerKnown) {
  const auto peer = *intake_.take(make_card(7, 4));
  EXPECT_EQ(peer->name, "p7");
  EXPECT_EQ(peers_.known({0, 7}), peer);
  EXPECT_EQ(known_revision(*peer), 4u);
  EXPECT_EQ(peer->born(), 7u);
  EXPECT_EQ(told_of_, peer.get());
  EXPECT_EQ(lane_.wakes, 1);
  const base::MutexLock lock(peer->use().mutex);
  EXPECT_EQ(peer->use().ticket.admission, (base::Id128{9, 7}));
}

TEST_F(CardIntakeTest, OneThatBringsNothingNewDisturbsNobody) {
  const auto peer = *intake_.take(make_card(7, 4));
  EXPECT_EQ(*intake_.take(make_card(7, 4)), peer);
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(lane_.wakes, 1);
  ASSERT_TRUE(intake_.take(make_card(7, 5)));
  EXPECT_EQ(known_revision(*peer), 5u);
}

TEST_F(CardIntakeTest, LoadingTellsTheCallerAlone) {
  const CardIntake::Loaded loaded = *intake_.load(make_card(7, 4));
  EXPECT_TRUE(loaded.change.any);
  EXPECT_EQ(told_, 0);
}

/// A card of so many regions from `first` on.
wire::Card with_regions(wire::Card card, std::uint32_t first, std::uint32_t count, std::uint32_t generation = 1) {
  for (std::uint32_t i = 0; i < count; ++i) {
    card.regions.push_back({.index = first + i, .generation = generation, .size = 8, .key = {1, first + i}});
  }
  return card;
}

TEST_F(CardIntakeTest, ACardTellsOfAsManyRegionsAsItMayAndNoneMore) {
  CardIntake bounded(lane_, peers_, *this, {.agent = "self", .regions = 3});
  ASSERT_TRUE(bounded.take(with_regions(make_card(7, 4), 0, 3)));
  const Status full = bounded.take(with_regions(make_card(7, 5), 0, 4)).error();
  EXPECT_EQ(full.code(), Code::kBusy);
  EXPECT_NE(full.message().find("limits.peer_regions = 3"), std::string_view::npos) << full.to_string();
  const auto delta = [&](std::uint32_t first, std::uint32_t count) {
    return bounded.take(with_regions(make_card(7, 5, wire::CardKind::kDelta), first, count, 2)).error();
  };
  EXPECT_EQ(delta(3, 1).code(), Code::kBusy) << "one more";
  EXPECT_TRUE(delta(0, 3).ok()) << "the same, told anew";
}

// An index that goes and comes again in one delta counts once.
TEST_F(CardIntakeTest, ADeltaThatTakesAwayMakesRoom) {
  CardIntake bounded(lane_, peers_, *this, {.agent = "self", .regions = 3});
  ASSERT_TRUE(bounded.take(with_regions(make_card(7, 4), 0, 3)));
  wire::Card again = with_regions(make_card(7, 5, wire::CardKind::kDelta), 2, 2, 2);
  again.removed = {{.index = 2, .generation = 1}};
  EXPECT_EQ(bounded.take(std::move(again)).error().code(), Code::kBusy);
  wire::Card moved = with_regions(make_card(7, 5, wire::CardKind::kDelta), 3, 1);
  moved.removed = {{.index = 2, .generation = 1}};
  EXPECT_TRUE(bounded.take(std::move(moved)));
}

TEST_F(CardIntakeTest, APeerIsNotKnownInFullByAPartOfItsCard) {
  const auto peer = *intake_.take(make_card(7, 4, wire::CardKind::kPartial));
  EXPECT_EQ(known_revision(*peer), 0u);
}

TEST_F(CardIntakeTest, ADeltaOfWhatIsNotKnownLeavesNoCard) {
  const Status refused = intake_.take(make_card(7, 4, wire::CardKind::kDelta)).error();
  EXPECT_EQ(refused.code(), Code::kNotFound);
  EXPECT_EQ(refused.peer(), "p7");
  EXPECT_EQ(known_revision(*peers_.known({0, 7})), 0u);
}

TEST_F(CardIntakeTest, ItsOwnCardTellsAnAgentNothing) {
  wire::Card own = make_card(7, 4);
  own.incarnation = {1, 1};
  EXPECT_EQ(*intake_.take(std::move(own)), peers_.self());
  EXPECT_EQ(told_, 0);
}

TEST_F(CardIntakeTest, BytesThatAreNoCardAndOnePeerTooManyAreRefused) {
  EXPECT_FALSE(intake_.take(base::as_bytes(std::string_view("no card"))));
  ASSERT_TRUE(intake_.take(make_card(1, 1)));
  ASSERT_TRUE(intake_.take(make_card(2, 1)));
  EXPECT_EQ(intake_.take(make_card(3, 1)).error().code(), Code::kBusy);
}

TEST_F(CardIntakeTest, OneThatIsDownBeginsAnewOnlyWhereThatIsWanted) {
  const auto peer = *intake_.take(make_card(7, 4));
  EXPECT_EQ(*intake_.take_anew(make_card(7, 4)), peer);
  peer->state = PeerState::kDown;
  EXPECT_EQ(*intake_.take(make_card(7, 4)), peer);
  const auto anew = *intake_.take_anew(make_card(7, 4));
  EXPECT_NE(anew, peer);
  EXPECT_EQ(anew->state.load(), PeerState::kKnown);
  EXPECT_EQ(known_revision(*anew), 4u);
}

std::string bytes_of(const wire::Card& card) { return wire::encode(card).value(); }

TEST_F(CardIntakeTest, APeerThatIsKnownByAFullCardIsNotInUse) {
  const std::string card = bytes_of(with_regions(make_card(7, 4), 0, 2));
  const auto peer = *intake_.take(base::as_bytes(card));
  EXPECT_EQ(told_of_, peer.get());
  EXPECT_EQ(peer->name, "p7");
  EXPECT_EQ(known_revision(*peer), 4u);
  EXPECT_EQ(*intake_.take(base::as_bytes(card)), peer);
  EXPECT_EQ(*intake_.take_anew(base::as_bytes(card)), peer);
  EXPECT_EQ(told_, 1) << "the same card brings nothing new";
  EXPECT_EQ(peer->used(), nullptr);
}

TEST_F(CardIntakeTest, AnotherCardIsMetWithWhatTheFirstTold) {
  const auto peer = *intake_.take(base::as_bytes(bytes_of(with_regions(make_card(7, 4), 0, 2))));
  const auto take = [&](const wire::Card& card) { return *intake_.take(base::as_bytes(bytes_of(card))); };
  EXPECT_EQ(take(with_regions(make_card(7, 5, wire::CardKind::kDelta), 2, 1)), peer);
  ASSERT_NE(peer->used(), nullptr);
  EXPECT_EQ(known_revision(*peer), 5u);
  EXPECT_EQ(told_, 2);
  const auto count = [&] {
    const base::MutexLock lock(peer->use().mutex);
    return peer->use().card->count();
  };
  EXPECT_EQ(count(), 3u);
  EXPECT_EQ(take(with_regions(make_card(7, 4), 0, 2)), peer);
  EXPECT_EQ(count(), 3u) << "an older one changes nothing";
  EXPECT_EQ(take(with_regions(make_card(7, 6), 0, 1)), peer);
  EXPECT_EQ(count(), 1u);
}

TEST_F(CardIntakeTest, ACardInBytesHasTheSameBounds) {
  CardIntake bounded(lane_, peers_, *this, {.agent = "self", .regions = 3});
  const auto take = [&](std::uint64_t number, std::uint32_t regions) {
    return bounded.take(base::as_bytes(bytes_of(with_regions(make_card(number, 4), 0, regions)))).error();
  };
  EXPECT_TRUE(take(7, 3).ok());
  const Status full = take(8, 4);
  EXPECT_EQ(full.code(), Code::kBusy);
  EXPECT_NE(full.message().find("limits.peer_regions = 3"), std::string_view::npos) << full.to_string();
  EXPECT_TRUE(take(8, 3).ok());
  EXPECT_EQ(take(9, 1).code(), Code::kBusy) << "it knows as many peers as it may";
  wire::Card own = make_card(7, 4);
  own.incarnation = {1, 1};
  EXPECT_EQ(*bounded.take(base::as_bytes(bytes_of(own))), peers_.self());
}

TEST_F(CardIntakeTest, OneThatIsDownBeginsAnewByBytesToo) {
  const std::string card = bytes_of(make_card(7, 4));
  const auto peer = *intake_.take(base::as_bytes(card));
  peer->state = PeerState::kDown;
  const auto anew = *intake_.take_anew(base::as_bytes(card));
  EXPECT_NE(anew, peer);
  EXPECT_EQ(known_revision(*anew), 4u);
}

}  // namespace
}  // namespace hawser::agent
