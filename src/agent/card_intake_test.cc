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
  EXPECT_EQ(peer->born.load(), 7u);
  EXPECT_EQ(told_of_, peer.get());
  EXPECT_EQ(lane_.wakes, 1);
  const base::MutexLock lock(peer->mutex);
  EXPECT_EQ(peer->ticket.admission, (base::Id128{9, 7}));
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

}  // namespace
}  // namespace hawser::agent
