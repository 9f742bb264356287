// Agents that find each other, and lose each other, by a real etcd.

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include <hawser/hawser.h>

#include "etcd_server.h"
#include "peer_process.h"

namespace hawser::etcd_test {
namespace {

AgentOptions options_of(const std::string& name, const EtcdServer& server, Duration lease = 5s) {
  AgentOptions options{.name = name};
  options.heartbeat = 2s;
  options.peer_timeout = 3s;
  options.directory = etcd({.endpoints = {server.endpoint()}, .lease = lease, .timeout = 2s}).value();
  return options;
}

TEST(EtcdAgent, APeerIsFoundAndIsDownWhenItsLeaseEnds) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  Agent here = Agent::open(options_of("here", server)).value();
  const std::string line = "there driven=1 timeout_ms=10000 directory=etcd://" + server.endpoint();
  real::PeerProcess process = real::PeerProcess::start(line);
  const Result<Peer> found = here.find_peer("there", kPatience);
  ASSERT_TRUE(found) << found.status().to_string();
  EXPECT_EQ(process.ask("find here 20000"), to_string(here.incarnation()));
  // Its card alone is known, no session would tell of its death.
  EXPECT_EQ(found->state(), PeerState::kKnown);
  const auto other_look = etcd({.endpoints = {server.endpoint()}}).value();
  EXPECT_NE(get(*other_look, "hawser/cards/there"), "(not found)");
  process.kill();
  std::optional<PeerEvent> event;
  EXPECT_TRUE(eventually([&] {
    here.poll();
    event = here.take_event();
    return event && event->kind == PeerEvent::Kind::kDown;
  }));
  EXPECT_EQ(found->state(), PeerState::kDown);
  EXPECT_EQ(get(*other_look, "hawser/cards/there"), "(not found)");
  // Its successor is another peer.
  real::PeerProcess second = real::PeerProcess::start(line);
  const Result<Peer> again = here.find_peer("there", kPatience);
  ASSERT_TRUE(again) << again.status().to_string();
  EXPECT_NE(again->incarnation(), found->incarnation());
  EXPECT_TRUE(here.close(5s).ok());
  EXPECT_EQ(get(*other_look, "hawser/cards/here"), "(not found)");
}

TEST(EtcdAgent, OpenedWhileEtcdIsAway) {
  EtcdServer server;
  const Instant from = now();
  Agent early = Agent::open(options_of("early", server)).value();
  EXPECT_LT(now() - from, kPatience);
  const Result<Peer> none = early.find_peer("late", 100ms);
  ASSERT_FALSE(none);
  EXPECT_NE(none.status().to_string().find("etcd"), std::string::npos);
  server.start();
  ASSERT_TRUE(server.await_ready());
  Agent late = Agent::open(options_of("late", server)).value();
  EXPECT_TRUE(late.find_peer("early", kPatience));
  EXPECT_TRUE(early.find_peer("late", kPatience));
  // A store that was lost gets the cards of those who live, and nobody is given up for it.
  server.start(/*is_new=*/true);
  ASSERT_TRUE(server.await_ready());
  Agent third = Agent::open(options_of("third", server)).value();
  EXPECT_TRUE(third.find_peer("early", kPatience));
  EXPECT_TRUE(third.find_peer("late", kPatience));
  early.poll();
  late.poll();
  EXPECT_EQ(early.find_peer("late", 1s)->state(), PeerState::kKnown);
}

// The directory's trouble is not the peer's: it is said which of the two failed, also where the caller waits for less
// time than the directory takes to give up.
TEST(EtcdAgent, ARefusedConnectionIsNotBlamedOnThePeer) {
  const EtcdServer server;  // Never started: nobody listens there.
  AgentOptions options = options_of("here", server);
  options.directory = etcd({.endpoints = {server.endpoint()}, .timeout = 300ms}).value();
  Agent here = Agent::open(std::move(options)).value();
  for (const Duration patience : {Duration(100ms), Duration(2s)}) {
    const Result<Peer> none = here.find_peer("there", patience);
    ASSERT_FALSE(none);
    const std::string text = none.error().to_string();
    EXPECT_TRUE(none.error().code() == Code::kDisconnected || none.error().code() == Code::kTimedOut) << text;
    EXPECT_TRUE(none.error().peer().empty()) << text;
    EXPECT_NE(text.find("etcd directory cannot be asked"), std::string::npos) << text;
    EXPECT_NE(text.find(server.endpoint()), std::string::npos) << text;
    EXPECT_EQ(text.find("check that the peer runs"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace hawser::etcd_test
