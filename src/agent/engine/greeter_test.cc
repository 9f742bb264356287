// Welcomes, and which path carries messages after them.

#include "agent/engine/greeter.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class GreeterTest : public ::testing::Test {
 protected:
  GreeterTest() {
    rig_.host.known[peer_->incarnation] = peer_;
    rig_.come_up(rig_.first, path_, *peer_);
  }
  Session& session() { return *peer_->session(); }

  Rig rig_;
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = *rig_.first.port->make();
};

TEST_F(GreeterTest, APathCarriesMessagesOnceBothHaveGreeted) {
  EXPECT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kWelcome});
  EXPECT_EQ(session().control(), nullptr);
  rig_.be_welcomed(rig_.first, path_);
  EXPECT_NE(session().control(), nullptr);
  EXPECT_TRUE(peer_->use().is_greeted.load());
  EXPECT_EQ(session().peer_number, 77u);
}

TEST_F(GreeterTest, WhereThereIsNoRoomItGreetsLater) {
  const std::shared_ptr<PeerCore> other = hand_peer("other", 8);
  HandPath& path = *rig_.first.port->make();
  path.message_room = 0;
  rig_.come_up(rig_.first, path, *other);
  EXPECT_TRUE(path.sent.empty());
  path.message_room = 5;
  rig_.pass(1ms);
  rig_.be_welcomed(rig_.first, path);
  rig_.turn();
  EXPECT_EQ(path.kinds_sent().front(), wire::SessionKind::kWelcome);
}

TEST_F(GreeterTest, APeerThatBeganAnewEndsTheSession) {
  rig_.be_welcomed(rig_.first, path_, 77);
  rig_.be_welcomed(rig_.first, path_, 78);
  EXPECT_EQ(peer_->state.load(), PeerState::kDown);
  const base::MutexLock lock(peer_->use().mutex);
  EXPECT_EQ(peer_->use().down_cause.scope(), Scope::kPath) << "it lives, so this proves no death";
}

TEST_F(GreeterTest, AWelcomeThatMeansASessionWhichIsOverEndsNothing) {
  rig_.be_welcomed(rig_.first, path_, 77, session().number + 1);
  EXPECT_EQ(peer_->state.load(), PeerState::kUp);
  EXPECT_EQ(session().control(), nullptr);
}

TEST_F(GreeterTest, AWelcomeOfNoSessionIsThePeersError) {
  rig_.be_welcomed(rig_.first, path_, 0);
  EXPECT_EQ(peer_->state.load(), PeerState::kDown);
}

TEST_F(GreeterTest, ThePreferredPathIsChosenAndAWorkingOneIsKept) {
  HandPath& other = *rig_.second.port->make();
  rig_.come_up(rig_.second, other, *peer_, 2);
  rig_.be_welcomed(rig_.second, other);
  EXPECT_EQ(session().control()->path, &other);
  rig_.be_welcomed(rig_.first, path_);
  EXPECT_EQ(session().control()->path, &other) << "messages stay where they go";
}

TEST_F(GreeterTest, APathHearsThatSomebodyWaits) {
  rig_.be_welcomed(rig_.first, path_);
  HeadArray buffer;
  const wire::Send message{.place = session().links.next(Priority::kRealtime)};
  ASSERT_TRUE(session().links.push(Priority::kRealtime, wire::encode(message, buffer), {}));
  Greeter::tell_awaited(session(), rig_.now());
  EXPECT_TRUE(path_.awaited);
  session().links.sent(Priority::kRealtime);
  ASSERT_TRUE(session().links.on_ack({.up_to = 1}).ok());
  Greeter::tell_awaited(session(), rig_.now());
  EXPECT_FALSE(path_.awaited) << "nobody does any more";
}

}  // namespace
}  // namespace hawser::agent
