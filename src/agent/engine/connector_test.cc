// Sessions and their paths: opened, adopted, lost, opened again, given up.

#include "agent/engine/connector.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class ConnectorTest : public ::testing::Test {
 protected:
  ConnectorTest() {
    constexpr std::string_view kBoth[] = {"first", "second"};
    Rig::give_card(*peer_, kBoth);
    rig_.host.known[peer_->incarnation] = peer_;
  }
  PeerState state() const { return peer_->state.load(); }
  Session& session() { return rig_.session_with(peer_); }
  void pass_until_pause_is_over() {
    rig_.clock.now_ = std::max(rig_.now(), session().alarms.at(SessionTimer::kRetry));
    rig_.turn();
  }
  static Status lost() { return Status(Code::kDisconnected, "the cable").with_scope(Scope::kPath); }

  Rig rig_;
  Connector& connector_ = rig_.engine.connector();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
};

TEST_F(ConnectorTest, AtFirstUseThePreferredBackendIsOpenedAndThenTheNext) {
  connector_.want(session(), rig_.now());
  connector_.want(session(), rig_.now());
  ASSERT_EQ(rig_.first.port->opened.size(), 1u);
  rig_.go_down(rig_.first, rig_.first.port->last(), lost());
  EXPECT_EQ(rig_.second.port->opened.size(), 1u);
  rig_.come_up(rig_.second, rig_.second.port->last(), *peer_);
  EXPECT_EQ(state(), PeerState::kUp);
  EXPECT_EQ(rig_.host.alive, 1);
}

TEST_F(ConnectorTest, WhereNoneWorksItIsTriedAgainAfterAPauseUntilTheTimeIsOver) {
  for (const Hand* hand : {&rig_.first, &rig_.second}) {
    hand->port->open_answer = Status(Code::kDisconnected, "nobody there").with_scope(Scope::kPath);
  }
  connector_.want(session(), rig_.now());
  EXPECT_EQ(rig_.first.port->opened.size(), 1u);
  EXPECT_TRUE(session().alarms.is_set(SessionTimer::kRetry));
  pass_until_pause_is_over();
  EXPECT_EQ(rig_.first.port->opened.size(), 2u);
  rig_.pass(rig_.options.peer_timeout);
  while (peer_->session() != nullptr && session().alarms.is_set(SessionTimer::kRetry)) pass_until_pause_is_over();
  rig_.turn();
  EXPECT_EQ(state(), PeerState::kDown);
  EXPECT_EQ(rig_.host.forgotten, std::vector<std::string>{"there"});
  EXPECT_EQ(peer_->session(), nullptr) << "nothing is left behind";
}

TEST_F(ConnectorTest, APathThatAPeerOpensIsAdopted) {
  HandPath& path = *rig_.first.port->make();
  rig_.come_up(rig_.first, path, *peer_);
  EXPECT_EQ(state(), PeerState::kUp);
  EXPECT_EQ(path.kinds_sent(), std::vector{wire::SessionKind::kWelcome});
  EXPECT_TRUE(rig_.inbox.take_event().has_value());
}

TEST_F(ConnectorTest, WhoOpensAPathInPlaceOfAnotherBackendsHasThatOneGivenUpFirst) {
  HandPath& path = *rig_.first.port->make();
  rig_.come_up(rig_.first, path, *peer_, 1);
  HandPath& other = *rig_.second.port->make();
  rig_.come_up(rig_.second, other, *peer_, 2, base::Id128{5, 1});
  EXPECT_EQ(path.given_up.code(), Code::kDisconnected);
}

TEST_F(ConnectorTest, ThePathForMessagesIsLostAndTheOtherIsGreetedAnew) {
  HandPath& path = rig_.connect(peer_);
  HandPath& other = *rig_.second.port->make();
  rig_.come_up(rig_.second, other, *peer_, 2);
  rig_.be_welcomed(rig_.second, other);
  const std::size_t before = other.sent.size();
  rig_.go_down(rig_.first, path, lost());
  EXPECT_EQ(session().control_serial, 0u);
  EXPECT_FALSE(peer_->use().is_greeted.load());
  EXPECT_GT(other.sent.size(), before);
  EXPECT_EQ(rig_.first.port->released, std::vector<backend::Path*>{&path});
  rig_.be_welcomed(rig_.second, other);
  EXPECT_NE(session().control_serial, 0u);
}

TEST_F(ConnectorTest, AProvenDeathEndsTheSession) {
  HandPath& path = rig_.connect(peer_);
  rig_.go_down(rig_.first, path, Status(Code::kDisconnected, "its process has ended").with_scope(Scope::kPeer));
  EXPECT_EQ(state(), PeerState::kDown);
  EXPECT_EQ(peer_->session(), nullptr);
}

/// As a path reports it whose peer was silent for all of peer_timeout.
Status too_long() { return Status(Code::kTimedOut, "silent for too long").with_scope(Scope::kPeer); }

TEST_F(ConnectorTest, ASilentPeerIsSuspectAndItsSessionGoesOnWithIt) {
  HandPath& path = rig_.connect(peer_);
  while (rig_.inbox.take_event()) continue;
  const std::uint64_t number = session().number;
  rig_.fall_silent(rig_.first, path);
  EXPECT_EQ(state(), PeerState::kSuspect);
  const std::optional<PeerEvent> told = rig_.inbox.take_event();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->kind, PeerEvent::Kind::kSuspect);
  EXPECT_EQ(told->cause.code(), Code::kTimedOut);
  EXPECT_TRUE(rig_.first.port->released.empty());
  rig_.fall_silent(rig_.first, path, false);
  EXPECT_EQ(state(), PeerState::kUp);
  EXPECT_EQ(rig_.inbox.take_event()->kind, PeerEvent::Kind::kUp);
  EXPECT_EQ(session().number, number);
  EXPECT_EQ(session().control()->path, &path);
}

TEST_F(ConnectorTest, APeerThatIsSilentForTooLongIsGivenUp) {
  HandPath& path = rig_.connect(peer_);
  rig_.fall_silent(rig_.first, path);
  rig_.go_down(rig_.first, path, too_long());
  EXPECT_EQ(state(), PeerState::kDown);
  EXPECT_TRUE(rig_.host.dead.empty()) << "silence proves no death";
}

/// The way of one path is cut, and the peer is heard by another.
TEST_F(ConnectorTest, ASilentPathIsLostAloneWhereThePeerIsHeardByAnother) {
  HandPath& path = rig_.connect(peer_);
  HandPath& other = *rig_.second.port->make();
  rig_.come_up(rig_.second, other, *peer_, 2);
  rig_.be_welcomed(rig_.second, other);
  rig_.fall_silent(rig_.first, path);
  EXPECT_TRUE(other.awaited) << "it tells whether the peer is silent, or the way of the first one cut";
  EXPECT_EQ(state(), PeerState::kSuspect) << "messages go by the silent one";
  rig_.go_down(rig_.first, path, too_long());
  EXPECT_EQ(state(), PeerState::kUp);
  rig_.be_welcomed(rig_.second, other);
  EXPECT_EQ(session().control()->path, &other);
}

TEST_F(ConnectorTest, APeerThatIsSilentOnAllPathsIsGivenUpWithTheFirst) {
  HandPath& path = rig_.connect(peer_);
  HandPath& other = *rig_.second.port->make();
  rig_.come_up(rig_.second, other, *peer_, 2);
  rig_.fall_silent(rig_.second, other);
  EXPECT_EQ(state(), PeerState::kUp) << "it is heard by the path for messages";
  rig_.fall_silent(rig_.first, path);
  EXPECT_EQ(state(), PeerState::kSuspect);
  rig_.go_down(rig_.first, path, too_long());
  EXPECT_EQ(state(), PeerState::kDown);
}

/// The time is the same whatever shows first that the peer is away.
TEST_F(ConnectorTest, ASuspectWhosePathBreaksIsGivenUpWhenItsTimeIsOver) {
  HandPath& path = rig_.connect(peer_);
  rig_.fall_silent(rig_.first, path);
  const Instant until = rig_.now() + rig_.options.peer_timeout;
  rig_.pass(rig_.options.peer_timeout / 2);
  rig_.go_down(rig_.first, path, lost());
  EXPECT_EQ(state(), PeerState::kSuspect);
  EXPECT_EQ(rig_.first.port->opened.back().deadline, until);
  // One that answers in time has all of it again.
  rig_.come_up(rig_.first, rig_.first.port->last(), *peer_, 3);
  EXPECT_EQ(state(), PeerState::kUp);
  rig_.go_down(rig_.first, rig_.first.port->last(), lost());
  EXPECT_EQ(session().connect_deadline, rig_.now() + rig_.options.peer_timeout);
}

TEST_F(ConnectorTest, ASuspectIsConnectedAnewBesideItsSilentPath) {
  HandPath& path = rig_.connect(peer_);
  const base::Id128 silent = session().find(&path)->session;
  rig_.fall_silent(rig_.first, path);
  const Instant until = rig_.now() + rig_.options.peer_timeout;
  const auto pass_a_part = [&] {
    rig_.pass(rig_.options.peer_timeout / 4);
    rig_.turn();
  };
  EXPECT_TRUE(rig_.first.port->opened.empty()) << "it has its time to answer";
  pass_a_part();
  ASSERT_EQ(rig_.first.port->opened.size(), 1U);
  EXPECT_EQ(rig_.first.port->opened.back().supersedes, silent);
  EXPECT_EQ(rig_.first.port->opened.back().deadline, until);
  rig_.go_down(rig_.first, rig_.first.port->last(), lost());
  EXPECT_EQ(state(), PeerState::kSuspect);
  pass_a_part();
  EXPECT_EQ(rig_.first.port->opened.size(), 2U) << "and again";
  pass_a_part();
  EXPECT_EQ(rig_.first.port->opened.size(), 2U) << "one at a time";
  EXPECT_TRUE(path.given_up.ok());
  rig_.come_up(rig_.first, rig_.first.port->last(), *peer_, 9);
  EXPECT_EQ(state(), PeerState::kUp);
  EXPECT_EQ(path.given_up.code(), Code::kDisconnected) << "the peer has dropped it";
  session().find(&path)->unsettled = true;
  rig_.go_down(rig_.first, path, path.given_up);
  EXPECT_EQ(state(), PeerState::kUp);
  EXPECT_TRUE(session().lost.empty()) << "the new one came up in its place";
  pass_a_part();
  EXPECT_EQ(rig_.first.port->opened.size(), 2U);
}

/// As a backend says it that found the peer's successor where the peer was.
Status restarted() { return Status(Code::kDisconnected, "another incarnation answers").with_scope(Scope::kPeer); }

TEST_F(ConnectorTest, WhatAnAttemptBesideASilentPathProvesCountsAtOnce) {
  HandPath& path = rig_.connect(peer_);
  rig_.fall_silent(rig_.first, path);
  rig_.pass(rig_.options.peer_timeout / 4);
  rig_.turn();
  rig_.go_down(rig_.first, rig_.first.port->last(), restarted());
  EXPECT_EQ(state(), PeerState::kDown);
  EXPECT_EQ(rig_.host.dead, std::vector<std::string>{"there"});
}

TEST_F(ConnectorTest, APeerThatIsHeardIsBelievedMoreThanAnAttempt) {
  HandPath& path = rig_.connect(peer_);
  rig_.fall_silent(rig_.first, path);
  rig_.pass(rig_.options.peer_timeout / 4);
  rig_.turn();
  rig_.fall_silent(rig_.first, path, false);
  rig_.go_down(rig_.first, rig_.first.port->last(), restarted());
  EXPECT_EQ(state(), PeerState::kUp);
}

TEST_F(ConnectorTest, ASuspectThatIsHeardInTimeKeepsItsPath) {
  HandPath& path = rig_.connect(peer_);
  rig_.fall_silent(rig_.first, path);
  rig_.fall_silent(rig_.first, path, false);
  rig_.pass(rig_.options.peer_timeout / 2);
  rig_.turn();
  EXPECT_TRUE(rig_.first.port->opened.empty());
}

/// Memory of this host cannot be cut off: who is silent there is stopped.
TEST_F(ConnectorTest, NoPathOfTheSameHostIsOpenedBesideASilentOne) {
  rig_.first.backend->its_traits.same_host_only = true;
  HandPath& path = rig_.connect(peer_);
  rig_.fall_silent(rig_.first, path);
  rig_.pass(rig_.options.peer_timeout / 2);
  rig_.turn();
  EXPECT_TRUE(rig_.first.port->opened.empty());
}

/// The silent path breaks while another one is on its way, which then fails, too.
TEST_F(ConnectorTest, ASuspectWithoutAPathIsConnectedUntilItsTimeIsOver) {
  HandPath& path = rig_.connect(peer_);
  rig_.fall_silent(rig_.first, path);
  const Instant until = rig_.now() + rig_.options.peer_timeout;
  rig_.pass(rig_.options.peer_timeout / 4);
  rig_.turn();
  rig_.go_down(rig_.first, path, lost());
  EXPECT_EQ(rig_.first.port->opened.size(), 1U);
  rig_.go_down(rig_.first, rig_.first.port->last(), lost());
  EXPECT_EQ(state(), PeerState::kSuspect);
  EXPECT_EQ(rig_.first.port->opened.size(), 2U);
  EXPECT_EQ(rig_.first.port->opened.back().deadline, until);
}

TEST_F(ConnectorTest, APeerThatBreaksTheRulesIsDropped) {
  rig_.connect(peer_);
  connector_.drop(session(), Status(Code::kCorrupt, "garbage"), rig_.now());
  EXPECT_EQ(state(), PeerState::kDown);
  EXPECT_EQ(rig_.first.port->released.size(), 1u);
}

TEST_F(ConnectorTest, WhatIsInvalidatedPartsWithTheNextTurn) {
  HandPath& path = rig_.connect(peer_);
  connector_.invalidate(session(), Status(Code::kDisconnected, "not wanted"), rig_.now());
  EXPECT_TRUE(rig_.first.port->released.empty());
  EXPECT_EQ(rig_.host.forgotten, std::vector<std::string>{"there"});
  EXPECT_EQ(path.kinds_sent().back(), wire::SessionKind::kBye);
  rig_.turn();
  EXPECT_EQ(rig_.first.port->released.size(), 1u);
}

TEST_F(ConnectorTest, APeerThatHasNotGreetedYetHearsTheGoodbye) {
  HandPath& path = *rig_.first.port->make();
  rig_.come_up(rig_.first, path, *peer_);
  ASSERT_EQ(session().control(), nullptr);
  connector_.invalidate(session(), Status(Code::kCancelled, "the agent closes"), rig_.now());
  ASSERT_FALSE(path.kinds_sent().empty());
  EXPECT_EQ(path.kinds_sent().back(), wire::SessionKind::kBye);
}

TEST_F(ConnectorTest, OneThatIsRefusedForThreeHeartbeatsIsDead) {
  const auto refuse = [&](const Hand& hand) {
    backend::PortEvent event;
    event.kind = backend::PortEvent::Kind::kPathDown;
    event.path = &hand.port->last();
    event.refused = true;
    event.status = Status(Code::kDisconnected, "refused").with_scope(Scope::kPath);
    hand.port->events.push_back(std::move(event));
    rig_.turn();
  };
  connector_.want(session(), rig_.now());
  const Instant begun = rig_.now();
  while (state() != PeerState::kDown && rig_.now() < begun + rig_.options.peer_timeout) {
    refuse(rig_.first);
    if (state() == PeerState::kDown) break;
    refuse(rig_.second);
    if (state() == PeerState::kDown) break;
    pass_until_pause_is_over();
  }
  EXPECT_EQ(state(), PeerState::kDown);
  EXPECT_EQ(rig_.now() - begun, 3 * rig_.options.heartbeat);
}

TEST_F(ConnectorTest, ReconnectTriesAtOnce) {
  HandPath& path = rig_.connect(peer_);
  connector_.reconnect(session(), rig_.now());
  EXPECT_EQ(path.reconnected, 1);
  rig_.engine.sessions().begin_close();
  connector_.reconnect(session(), rig_.now());
  EXPECT_EQ(path.reconnected, 1);
}

TEST_F(ConnectorTest, ThereIsNoRoomForMorePeers) {
  rig_.host.meet_answer = Status(Code::kBusy, "too many peers");
  HandPath& path = *rig_.first.port->make();
  rig_.come_up(rig_.first, path, *hand_peer("another", 9));
  EXPECT_EQ(rig_.first.port->released, std::vector<backend::Path*>{&path});
  EXPECT_EQ(rig_.host.refusals, std::vector{backend::Quota::kPeers});
  ASSERT_EQ(path.kinds_sent(), std::vector{wire::SessionKind::kBye}) << "it is told why";
  EXPECT_NE(path.sent[0].find("too many peers"), std::string::npos);
}

TEST_F(ConnectorTest, WhoHasAnotherKeyThanThePeersCardIsNotThePeer) {
  rig_.host.is_the_peer = false;
  HandPath& path = *rig_.first.port->make();
  rig_.come_up(rig_.first, path, *hand_peer("another", 9));
  EXPECT_EQ(rig_.first.port->released, std::vector<backend::Path*>{&path});
  EXPECT_TRUE(path.sent.empty());
}

TEST_F(ConnectorTest, TheBookOfNamesHearsOfUpAndDown) {
  const std::shared_ptr<PeerCore> peer = hand_peer("another", 9);
  rig_.come_up(rig_.first, *rig_.first.port->make(), *peer);
  EXPECT_EQ(rig_.host.noted, PeerState::kUp);
  Session& session = rig_.session_with(rig_.host.known.at(peer->incarnation));
  rig_.engine.connector().drop(session, Status(Code::kCorrupt, "garbage"), rig_.now());
  EXPECT_EQ(rig_.host.noted, PeerState::kDown);
}

}  // namespace
}  // namespace hawser::agent
