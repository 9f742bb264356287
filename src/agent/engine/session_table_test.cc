// Which sessions there are, which have work, which wait, which are over.

#include "agent/engine/session_table.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class SessionTableTest : public ::testing::Test {
 protected:
  ~SessionTableTest() override {
    static_cast<void>(table_.take_all());
    for (const std::shared_ptr<PeerCore>& each : {peer_, other_}) each->use().session.reset();  // They own each other.
  }
  std::vector<Session*> serve() {
    std::vector<Session*> served;
    table_.serve_all([&](Session& session) { served.push_back(&session); });
    return served;
  }

  Inbox inbox_{4};
  base::Rng rng_{1};
  ChannelBook channels_;
  ServiceTable services_{channels_};
  SessionTable table_{{.share = 1 << 16}, inbox_, rng_, services_, channels_};
  const std::shared_ptr<PeerCore> peer_ = hand_peer("one", 1), other_ = hand_peer("two", 2);
  const Instant now_ = Instant::from_ns(1'000'000'000);
};

TEST_F(SessionTableTest, APeerHasOneSessionMadeAtFirstUse) {
  EXPECT_TRUE(table_.all().empty());
  Session& session = table_.of(peer_);
  EXPECT_EQ(&table_.of(peer_), &session);
  EXPECT_NE(session.number, 0u);
  EXPECT_NE(table_.of(other_).number, session.number);
  EXPECT_EQ(table_.all().size(), 2u);
}

TEST_F(SessionTableTest, WorkIsServedOnceAndWhatIsLeftOverComesInTheNextRound) {
  Session& session = table_.of(peer_);
  table_.enlist(session);
  table_.enlist(session);
  EXPECT_EQ(serve(), std::vector<Session*>{&session});
  EXPECT_TRUE(serve().empty());
  table_.enlist(session);
  int rounds = 0;
  table_.serve_all([&](Session& each) {
    ++rounds;
    table_.enlist(each);
  });
  EXPECT_EQ(rounds, 1);
  EXPECT_TRUE(table_.has_work());
}

TEST_F(SessionTableTest, ABlockedOneIsServedOnceSomethingMovedOrThePauseIsOver) {
  Session& session = table_.of(peer_);
  table_.block(session, now_);
  table_.block(session, now_ + 1s);
  EXPECT_EQ(table_.blocked_until(), now_ + 1ms);
  table_.unblock(false, now_ + 1ms - 1ns);
  EXPECT_FALSE(table_.has_work());
  table_.unblock(false, now_ + 1ms);
  EXPECT_EQ(serve(), std::vector<Session*>{&session});
  EXPECT_EQ(table_.blocked_until(), Instant::max());
  table_.block(session, now_);
  table_.unblock(true, now_);
  EXPECT_EQ(serve(), std::vector<Session*>{&session});
}

TEST_F(SessionTableTest, ARetiredOneGoesWhenNeitherTransferNorPathIsLeft) {
  Session& session = table_.of(peer_);
  session.slots = 1;
  table_.retire(session);
  table_.retire(session);
  table_.enlist(session);
  table_.block(session, now_);
  EXPECT_TRUE(table_.take_quiet().empty());
  session.slots = 0;
  session.paths.emplace_back();
  EXPECT_TRUE(table_.take_quiet().empty());
  session.paths.clear();
  EXPECT_EQ(table_.take_quiet(), std::vector<Session*>{&session});
  EXPECT_TRUE(table_.all().empty());
  EXPECT_FALSE(table_.has_work());
  EXPECT_FALSE(table_.has_retired());
  EXPECT_EQ(table_.blocked_until(), Instant::max());
}

TEST_F(SessionTableTest, ASessionWithAPeerThatIsDownIsRetiredAtOnce) {
  peer_->state = PeerState::kDown;
  table_.of(peer_);
  EXPECT_TRUE(table_.has_retired());
}

}  // namespace
}  // namespace hawser::agent
