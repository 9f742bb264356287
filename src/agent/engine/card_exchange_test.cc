// Cards between agents in session.

#include "agent/engine/card_exchange.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class CardExchangeTest : public ::testing::Test {
 protected:
  CardExchangeTest() {
    rig_.host.card_of = peer_;
    path_.sent.clear();
  }
  Session& session() { return *peer_->session(); }
  static wire::CardPart part(std::string_view bytes, std::uint32_t offset, std::uint32_t total) {
    return {.revision = 2, .total = total, .offset = offset, .bytes = base::as_bytes(bytes)};
  }

  Rig rig_;
  CardExchange& exchange_ = rig_.engine.exchange();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
};

TEST_F(CardExchangeTest, ACardIsAskedForSinceWhatIsKnown) {
  rig_.host.known_card = 4;
  exchange_.want(session(), rig_.now());
  rig_.turn();
  ASSERT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kCardRequest});
  const auto request = wire::decode_card_request(*wire::open_envelope(base::as_bytes(path_.sent[0])));
  EXPECT_EQ(request->since_revision, 4u);
}

TEST_F(CardExchangeTest, ACheckCountsItsAnswerAndIsNoEventWhereNothingChanged) {
  rig_.host.known_card = 4;
  exchange_.check(session());
  rig_.turn();
  ASSERT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kCardRequest});
  const auto request = wire::decode_card_request(*wire::open_envelope(base::as_bytes(path_.sent[0])));
  EXPECT_EQ(request->since_revision, 3u) << "who has all is told nothing";
  while (rig_.inbox.take_event()) continue;
  rig_.host.card_base = 4;
  EXPECT_TRUE(exchange_.on_part(session(), part("told", 0, 4), rig_.now()).ok());
  EXPECT_EQ(peer_->use().card_checks, 0) << "the peer told that by itself";
  EXPECT_TRUE(rig_.inbox.take_event());
  rig_.host.card_base = 3;
  EXPECT_TRUE(exchange_.on_part(session(), part("same", 0, 4), rig_.now()).ok());
  EXPECT_EQ(peer_->use().card_checks, 1);
  EXPECT_FALSE(rig_.inbox.take_event());
}

TEST_F(CardExchangeTest, WhoAsksIsToldAndHearsOfLaterChanges) {
  ASSERT_TRUE(exchange_.on_request(session(), {.since_revision = 0}).ok());
  rig_.turn();
  ASSERT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kCardPart});
  const auto told = wire::decode_card_part(*wire::open_envelope(base::as_bytes(path_.sent[0])));
  EXPECT_EQ(base::as_text(told->bytes), "card since 0");
  rig_.host.revision = 2;
  exchange_.on_own_change();
  rig_.turn();
  EXPECT_EQ(path_.sent.size(), 2u);
}

TEST_F(CardExchangeTest, PartsMakeACardAndTheUserHearsOfIt) {
  EXPECT_TRUE(exchange_.on_part(session(), part("ab", 0, 4), rig_.now()).ok());
  EXPECT_TRUE(rig_.host.loaded.empty());
  while (rig_.inbox.take_event()) continue;
  EXPECT_TRUE(exchange_.on_part(session(), part("cd", 2, 4), rig_.now()).ok());
  EXPECT_EQ(rig_.host.loaded, std::vector<std::string>{"abcd"});
  EXPECT_EQ(rig_.inbox.take_event()->kind, PeerEvent::Kind::kCardChanged);
}

TEST_F(CardExchangeTest, PartsThatDoNotFollowEachOtherAreThePeersError) {
  EXPECT_EQ(exchange_.on_part(session(), part("ab", 2, 4), rig_.now()).code(), Code::kCorrupt);
  ASSERT_TRUE(exchange_.on_part(session(), part("ab", 0, 5), rig_.now()).ok());
  EXPECT_EQ(exchange_.on_part(session(), part("ab", 3, 5), rig_.now()).code(), Code::kCorrupt);
  EXPECT_EQ(exchange_.on_part(session(), part("ab", 0, wire::kCardSizeMax + 1), rig_.now()).code(), Code::kCorrupt);
  EXPECT_TRUE(exchange_.on_part(session(), part("ab", 0, wire::kCardSizeMax), rig_.now()).ok());
}

TEST_F(CardExchangeTest, ACardOfSomebodyElseIsThePeersErrorAndADeltaOnNothingIsAskedForWhole) {
  rig_.host.card_of = hand_peer("another", 9);
  EXPECT_EQ(exchange_.on_part(session(), part("ab", 0, 2), rig_.now()).code(), Code::kCorrupt);
  rig_.host.load_answer = Status(Code::kNotFound, "a delta on what is not here");
  EXPECT_TRUE(exchange_.on_part(session(), part("ab", 0, 2), rig_.now()).ok());
  rig_.turn();
  EXPECT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kCardRequest});
}

TEST_F(CardExchangeTest, OfMoreThanItMayTellThePeerHears) {
  rig_.host.load_answer = Status(Code::kBusy, "too many regions").with_advice("tell of fewer");
  EXPECT_EQ(exchange_.on_part(session(), part("ab", 0, 2), rig_.now()).code(), Code::kBusy);
  EXPECT_EQ(rig_.host.refusals, std::vector{backend::Quota::kRegions});
  ASSERT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kBye});
  EXPECT_NE(path_.sent[0].find("too many regions; tell of fewer"), std::string::npos);
}

}  // namespace
}  // namespace hawser::agent
