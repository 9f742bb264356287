// Peers: met, forgotten, restarted, closed; told apart by their incarnation.

#include <algorithm>

#include "agent_suite.h"
#include "base/inside.h"

namespace hawser::conformance {
namespace {

/// Waits for the next event of this kind about `peer`.
std::optional<PeerEvent> await_event(Environment& env, Agent& agent, PeerEvent::Kind kind, const Incarnation& peer) {
  std::optional<PeerEvent> found;
  env.eventually([&] {
    while (auto event = agent.take_event()) {
      if (event->kind == kind && event->peer.incarnation() == peer) found = std::move(event);
    }
    return found.has_value();
  });
  return found;
}

TEST_P(Conformance, PeersComeUp) {
  open_pair();
  const Peer peer = a_to_b();
  EXPECT_EQ(peer.name(), b().name());
  EXPECT_EQ(peer.incarnation(), b().incarnation());
  EXPECT_EQ(peer.is_self(), self());
  EXPECT_EQ(peer.state(), PeerState::kKnown);
  Status connected;
  env().blocking(a(), [&] { connected = peer.connect(kPatience); });
  must(connected);
  EXPECT_EQ(peer.state(), PeerState::kUp);
  EXPECT_TRUE(await_event(env(), a(), PeerEvent::Kind::kUp, b().incarnation()));
  if (self()) return;
  EXPECT_TRUE(await_event(env(), b(), PeerEvent::Kind::kUp, a().incarnation()));
  ASSERT_EQ(a().peers().size(), 1U);
  EXPECT_EQ(a().peers()[0].name(), "b");
}

TEST_P(Conformance, ReconnectBeginsAndBreaksNothing) {
  open_pair();
  const Peer peer = a_to_b();
  must(peer.reconnect());  // Nothing was tried yet: this is the first.
  EXPECT_TRUE(env().eventually([&] { return peer.state() == PeerState::kUp; }));
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer met = meet();
  fill(source.bytes, 3);
  const Plan plan = must(a().plan_write(met, {{source.range(0, 4096)}}, {{met.range("target", 0, 4096)}}));
  for (int i = 0; i < 5; ++i) {
    Transfer sent = must(plan.submit());
    must(met.reconnect());
    must(finish(sent, 10s));
  }
  EXPECT_EQ(met.state(), PeerState::kUp);
  EXPECT_TRUE(holds(target.bytes, 3));
  if (self()) return;
  must(a().invalidate(met));
  EXPECT_EQ(met.reconnect().code(), Code::kDisconnected);
  EXPECT_EQ(Peer().reconnect().code(), Code::kInvalid);
}

TEST_P(Conformance, TheSameIncarnationTwiceIsOnePeer) {
  open_pair();
  Area source = add(a(), "source", 64), target = add(b(), "target", 64);
  const Peer once = a_to_b(), again = a_to_b();
  EXPECT_EQ(core_of(once), core_of(again));
  const Plan plan = must(a().plan_write(again, {{source.range(0, 64)}}, {{once.range("target", 0, 64)}}));
  must(run(plan));
  EXPECT_EQ(a().peers().size(), self() ? 0U : 1U);
  EXPECT_TRUE(must(a().add_peer(must(a().card()))).is_self());
}

TEST_P(Conformance, AgentsOfOneNameAreToldApart) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Agent* const twin = open(options("b"));
  Area source = add(a(), "source", 4096), one = add(b(), "target", 4096), other = add(*twin, "target", 4096);
  const Peer to_b = a_to_b(), to_twin = know(a(), *twin);
  EXPECT_EQ(to_b.name(), to_twin.name());
  EXPECT_NE(to_b.incarnation(), to_twin.incarnation());
  EXPECT_NE(to_string(to_b.incarnation()), to_string(to_twin.incarnation()));
  fill(source.bytes, 1);
  must(run(must(a().plan_write(to_b, {{source.range(0, 4096)}}, {{to_b.range("target", 0, 4096)}})), {.notify = "b"}));
  fill(source.bytes, 2);
  must(run(must(a().plan_write(to_twin, {{source.range(0, 4096)}}, {{to_twin.range("target", 0, 4096)}})),
           {.notify = "twin"}));
  EXPECT_EQ(next_notification(b()).text, "b");
  EXPECT_EQ(next_notification(*twin).text, "twin");
  EXPECT_TRUE(holds(one.bytes, 1));
  EXPECT_TRUE(holds(other.bytes, 2));
  EXPECT_TRUE(says(a().plan_write(to_b, {{source.range(0, 8)}}, {{to_twin.range("target", 0, 8)}}).error(),
                   Code::kInvalid, {"plan_write", "target", "does not belong"}));
}

TEST_P(Conformance, AClosedPeerIsGone) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  constexpr std::size_t kSize = 8 << 20;
  Area source = add(a(), "source", kSize);
  Area target = add(b(), "target", kSize);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  std::vector<Transfer> all;
  for (int i = 0; i < 3; ++i) all.push_back(must(plan.submit({.notify = "x"})));
  pass(2);
  const Incarnation gone = b().incarnation();
  Status closed;
  env().blocking(b(), [&] { closed = b().close(kPatience); });
  must(closed);
  for (Transfer& each : all) {
    const Status status = finish(each, 10s);
    const bool fits = status.ok() || status.code() == Code::kDisconnected || status.code() == Code::kDenied;
    EXPECT_TRUE(fits) << status.to_string();
  }
  const auto down = await_event(env(), a(), PeerEvent::Kind::kDown, gone);
  ASSERT_TRUE(down);
  EXPECT_FALSE(down->cause.ok());
  EXPECT_EQ(peer.state(), PeerState::kDown);
  EXPECT_TRUE(says(plan.submit().error(), Code::kDisconnected, {"b", "plan again"}));
  EXPECT_EQ(peer.notify("x").code(), Code::kDisconnected);
  EXPECT_EQ(peer.send(16, {}).error().code(), Code::kDisconnected);
  EXPECT_EQ(peer.connect(0s).code(), Code::kDisconnected);
  EXPECT_EQ(a().plan_write(peer, {{source.range(0, 8)}}, {{peer.range("target", 0, 8)}}).error().code(),
            Code::kDisconnected);
  EXPECT_FALSE(a().explain(plan).empty());
  EXPECT_TRUE(env().eventually([&] { return a().peers().empty(); }));
}

TEST_P(Conformance, ARestartedPeerIsAnother) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area source = add(a(), "source", 4096);
  Peer old_peer;
  Plan old_plan;
  {
    Area target = add(b(), "target", 4096);
    old_peer = meet();
    old_plan = must(a().plan_write(old_peer, {{source.range(0, 4096)}}, {{old_peer.range("target", 0, 4096)}}));
    must(run(old_plan));
  }
  drop(b_);
  b_ = open(options("b"));
  Area target = add(b(), "target", 4096);
  // At once, also before the old one's end was noticed.
  const Peer peer = a_to_b();
  EXPECT_NE(peer.incarnation(), old_peer.incarnation());
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 4096)}}, {{peer.range("target", 0, 4096)}}));
  fill(source.bytes, 1);
  must(run(plan, {.notify = "new"}));
  EXPECT_TRUE(holds(target.bytes, 1));
  EXPECT_EQ(next_notification(b()).text, "new");
  const Status stale = run(old_plan);
  EXPECT_EQ(stale.code(), Code::kDisconnected) << stale.to_string();
  EXPECT_EQ(stale.buffer(), BufferState::kUntouched) << stale.to_string();
  EXPECT_TRUE(env().eventually([&] { return old_peer.state() == PeerState::kDown; }));
  must(run(plan));
}

TEST_P(Conformance, AnInvalidatedPeerCanBeMetAgain) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  constexpr std::size_t kSize = 8 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  std::ranges::fill(target.bytes, std::byte{0});
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  Transfer sent = must(plan.submit());
  pass(1);
  must(a().invalidate(peer));
  must(a().invalidate(peer));
  const Status status = finish(sent);
  EXPECT_TRUE(status.ok() || status.code() == Code::kDisconnected) << status.to_string();
  EXPECT_EQ(peer.state(), PeerState::kDown);
  EXPECT_EQ(plan.submit().error().code(), Code::kDisconnected);
  const Peer again = a_to_b();
  EXPECT_EQ(again.incarnation(), peer.incarnation());
  EXPECT_NE(again.state(), PeerState::kDown);
  fill(source.bytes, 1);
  const Plan fresh = must(a().plan_write(again, {{source.range(0, kSize)}}, {{again.range("target", 0, kSize)}}));
  must(run(fresh, {.notify = "again"}));
  EXPECT_EQ(next_notification(b()).text, "again");
  EXPECT_TRUE(holds(target.bytes, 1));
  EXPECT_TRUE(says(a().invalidate(a().self()), Code::kInvalid, {"invalidate", "itself"}));
  EXPECT_TRUE(says(a().invalidate(Peer()), Code::kInvalid, {"invalidate", "empty"}));
  EXPECT_EQ(b().invalidate(again).code(), Code::kInvalid);
}

TEST_P(Conformance, AnIdlePeerThatIsInvalidatedHearsOfIt) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  const Peer peer = meet();
  const Peer us = b_to_a();
  ASSERT_TRUE(env().eventually([&] { return us.state() == PeerState::kUp; }));
  must(a().invalidate(peer));
  EXPECT_EQ(peer.state(), PeerState::kDown);
  EXPECT_TRUE(a().peers().empty());
  EXPECT_TRUE(env().eventually([&] { return us.state() == PeerState::kDown; }));
  const Peer again = meet();
  EXPECT_EQ(again.incarnation(), peer.incarnation());
  EXPECT_EQ(peer.state(), PeerState::kDown);
}

TEST_P(Conformance, UnknownPeersAreNamed) {
  open_pair();
  Area source = add(a(), "source", 64), target = add(b(), "target", 64);
  EXPECT_TRUE(says(a().find_peer("nobody", 0s).error(), Code::kNotFound, {"find_peer", "nobody", "directory", "card"}));
  EXPECT_TRUE(says(a().find_peer("", 0s).error(), Code::kInvalid, {"find_peer", "empty"}));
  const std::vector<LocalRange> ours = {source.range(0, 64)};
  EXPECT_TRUE(
      says(a().plan_write(Peer(), ours, {{RemoteRange{}}}).error(), Code::kInvalid, {"plan_write", "peer", "empty"}));
  const Peer peer = a_to_b();
  EXPECT_TRUE(says(peer.region("nowhere").error(), Code::kNotFound, {"nowhere"}));
  EXPECT_TRUE(says(peer.region(77).error(), Code::kNotFound, {"#77"}));
  EXPECT_TRUE(says(Peer().region("x").error(), Code::kInvalid, {"Peer::region", "empty"}));
  const Status planned = a().plan_write(peer, ours, {{peer.range("nowhere", 0, 64)}}).error();
  EXPECT_TRUE(says(planned, Code::kNotFound, {"plan_write", "remote range 0", "peer"}));
  EXPECT_EQ(peer.table("nowhere", 8).status().code(), Code::kNotFound);
  if (self()) return;
  EXPECT_TRUE(says(peer.region("nowhere").error(), Code::kNotFound, {"target"}));  // It says which there are.
  EXPECT_TRUE(says(planned, Code::kNotFound, {"target"}));
  EXPECT_TRUE(says(b().plan_write(peer, ours, {{peer.range("target", 0, 64)}}).error(), Code::kInvalid,
                   {"plan_write", "another agent"}));
}

TEST_P(Conformance, PeersAreBounded) {
  HAWSER_NEEDS_TWO_AGENTS();
  AgentOptions few = options("a");
  few.limits.peers = 2;  // Itself and one other.
  open_pair(few, options("b"));
  (void)a_to_b();
  Agent* const third = open(options("c"));
  EXPECT_TRUE(says(a().add_peer(must(third->card())).error(), Code::kBusy, {"limits.peers = 2", "c"}));
  const Peer peer = a_to_b();
  must(a().invalidate(peer));
  EXPECT_TRUE(env().eventually([&] { return a().add_peer(must(third->card())).error().ok(); }));
}

TEST_P(Conformance, ThreeAgentsMeetInARing) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  std::vector<Agent*> agents = {a_, b_, open(options("c"))};
  std::vector<Area> areas;
  for (std::size_t i = 0; i < 3; ++i) {
    areas.push_back(add(*agents[i], "ring", 3 * 100'000));
    fill(areas[i].bytes.first(100'000), i);
  }
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < 3; ++i) {
    const Peer next = know(*agents[i], *agents[(i + 1) % 3]);
    const Plan plan =
        must(agents[i]->plan_write(next, {{areas[i].range(0, 100'000)}}, {{next.range("ring", 100'000, 100'000)}}));
    all.push_back(must(plan.submit({.notify = "from " + std::to_string(i)})));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    must(finish(all[i]));
    EXPECT_EQ(next_notification(*agents[(i + 1) % 3]).text, "from " + std::to_string(i));
    EXPECT_TRUE(holds(areas[(i + 1) % 3].bytes.subspan(100'000, 100'000), i));
  }
}

}  // namespace
}  // namespace hawser::conformance
