// A process dies (SIGKILL), leaves without a word, or becomes another: in each phase of its peer's work.

#include <signal.h>
#include <algorithm>

#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::size_t kSize = 4 << 20;
constexpr std::byte kCanary{0xca};
constexpr Duration kNoticed = 50ms * kScale;  ///< A death on the same host.
constexpr int kTries = 4;

/// What a transfer to a process that died may end with.
testing::AssertionResult ended_by_death(const Status& status) {
  if (status.ok() || status.code() == Code::kDisconnected || status.code() == Code::kTimedOut) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << status.to_string();
}

TEST_P(RealTest, KilledBeforeAndWhileConnecting) {
  for (const Duration delay : {0us, 50us, 200us, 500us, 1000us, 3000us}) {
    Here here(GetParam(), quick("here"));
    here.add("source", kSize);
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
    process.ask("region target " + std::to_string(kSize) + " foreign");
    const Peer peer = here.meet(process);
    const Plan plan = here.plan_write(peer, "source", "target", kSize);
    if (delay == 0us) process.kill();
    Result<Transfer> sent = plan.submit({.notify = "x", .deadline = 5s});
    const Instant from = now();
    eventually([&] { return now() - from >= delay; });
    process.kill();
    const Status status = sent ? finish(*sent) : sent.error();
    EXPECT_TRUE(ended_by_death(status));
    const auto time = here.await_down(peer, from, 10s);
    ASSERT_TRUE(time);
    EXPECT_EQ(plan.submit().error().code(), Code::kDisconnected);
  }
}

TEST_P(RealTest, ADeathIsNoticedWithin50Milliseconds) {
  Duration best = Duration::max();
  for (int attempt = 0; attempt < kTries && best > kNoticed; ++attempt) {
    Here here(GetParam(), quick("here"));
    here.add("source", kSize);
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
    process.ask("region target " + std::to_string(kSize) + " foreign");
    const Peer peer = here.meet(process);
    const Plan plan = here.plan_write(peer, "source", "target", kSize);
    must(peer.connect(kPatience));
    const Instant from = now();
    process.kill();
    const auto time = here.await_down(peer, from);
    ASSERT_TRUE(time) << "the death was not noticed";
    print_time("death noticed after", *time);
    best = std::min(best, *time);
    const Status status = plan.submit().error();
    EXPECT_EQ(status.code(), Code::kDisconnected);
    EXPECT_NE(status.to_string().find("there"), std::string::npos) << status.to_string();
  }
  EXPECT_LE(best, kNoticed);
}

/// The process opened the connection, and its card was never loaded here: there is nobody to connect to.
TEST_P(RealTest, TheDeathOfAnOpenerIsNoticedWithin50Milliseconds) {
  Duration best = Duration::max();
  for (int attempt = 0; attempt < kTries && best > kNoticed; ++attempt) {
    AgentOptions options = quick("here");
    options.peer_timeout = 5s;
    Here here(GetParam(), options);
    here.add("target", kSize);
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
    process.ask("region source " + std::to_string(kSize) + " foreign");
    const std::string name = process.know(must(here.agent().card()));
    process.ask("plan write source " + name + " target " + std::to_string(kSize));
    process.ask("submit notify=hello");
    ASSERT_TRUE(eventually([&] { return here.agent().take_notification().has_value(); }));
    const std::vector<Peer> peers = here.agent().peers();
    ASSERT_EQ(peers.size(), 1u);
    const Instant from = now();
    process.kill();
    const auto time = here.await_down(peers.front(), from);
    ASSERT_TRUE(time) << "the death was not noticed";
    print_time("death of an opener noticed after", *time);
    best = std::min(best, *time);
    const std::string why = peers.front().notify("x").to_string();
    EXPECT_NE(why.find("'there' is gone"), std::string::npos) << why;
  }
  EXPECT_LE(best, kNoticed);
}

TEST_P(RealTest, KilledInFlight) {
  for (const Duration delay : {0us, 300us, 1000us, 4000us, 10000us}) {
    Here here(GetParam(), quick("here"));
    Memory& source = here.add("source", kSize);
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
    process.ask("region target " + std::to_string(kSize) + (GetParam().allocated ? " allocated" : " foreign"));
    const Peer peer = here.meet(process);
    const Plan write = here.plan_write(peer, "source", "target", kSize);
    const Plan read = here.plan_read(peer, "target", "source", kSize);
    must(peer.connect(kPatience));
    std::vector<Transfer> all;
    for (int i = 0; i < 6; ++i) all.push_back(must((i % 2 == 0 ? write : read).submit({.notify = "x"})));
    const Instant from = now();
    eventually([&] { return now() - from >= delay; });
    const Instant killed = now();
    process.kill();
    for (Transfer& each : all) EXPECT_TRUE(ended_by_death(finish(each, 10s)));
    print_time("all transfers final after", now() - killed);
    EXPECT_LE(now() - killed, 2s);
    // All are final: this memory is ours alone.
    std::ranges::fill(source.bytes, kCanary);
    EXPECT_TRUE(here.await_down(peer, killed));
    EXPECT_TRUE(all_are(source.bytes, kCanary));
    must(source.region.close(kPatience));
  }
}

TEST_P(RealTest, KilledAsInitiator) {
  for (const Duration delay : {300us, 2000us, 8000us}) {
    Here here(GetParam(), quick("here"));
    Memory& target = here.add("target", kSize);
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
    process.ask("region source " + std::to_string(kSize) + (GetParam().allocated ? " allocated" : " foreign"));
    std::string here_there;
    const Peer peer = here.meet(process, &here_there);
    process.ask("plan write source " + here_there + " target " + std::to_string(kSize));
    process.ask("flood");
    ASSERT_TRUE(eventually([&] { return peer.state() == PeerState::kUp; }));
    const Instant from = now();
    eventually([&] { return now() - from >= delay; });
    const Instant killed = now();
    process.kill();
    // Its pins go with it: the region can be closed although it may have died inside.
    must(target.region.close(5s));
    print_time("region closed after", now() - killed);
    std::ranges::fill(target.bytes, kCanary);
    EXPECT_TRUE(here.await_down(peer, killed));
    EXPECT_TRUE(all_are(target.bytes, kCanary));
  }
}

TEST_P(RealTest, KilledAtNotifications) {
  Here here(GetParam(), quick("here"));
  here.add("source", 4096);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there", "driven=1 places=64"));
  process.ask("region target 4096 foreign");
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", 4096);
  must(peer.connect(kPatience));
  std::vector<Transfer> all;
  const std::string text(kPlace);
  for (int i = 0; i < 40; ++i) {
    if (Result<Transfer> sent = plan.submit({.notify = text})) all.push_back(std::move(*sent));
  }
  ASSERT_TRUE(eventually([&] { return process.ask("take") == "got " + text; }));
  for (int i = 0; i < 20; ++i) {
    if (Result<Transfer> sent = plan.submit({.notify = text})) all.push_back(std::move(*sent));
    if (i == 10) process.kill();
    if (!peer.notify("y").ok() && peer.state() == PeerState::kDown) break;
  }
  for (Transfer& each : all) EXPECT_TRUE(ended_by_death(finish(each, 10s)));
  EXPECT_TRUE(here.await_down(peer, now()));
}

TEST_P(RealTest, RestartedUnderTheSameName) {
  Here here(GetParam(), quick("here"));
  Memory& source = here.add("source", 64 * 1024);
  std::ranges::fill(source.bytes, std::byte{7});
  Plan old_plan;
  Peer old_peer;
  for (int life = 0; life < 4; ++life) {
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "phoenix"));
    process.ask("region target 65536 foreign");
    const Peer peer = here.meet(process);
    if (old_peer.valid()) {
      EXPECT_NE(peer.incarnation(), old_peer.incarnation());
    }
    const Plan plan = here.plan_write(peer, "source", "target", 64 * 1024);
    Transfer sent = must(plan.submit({.notify = "life"}));
    must(finish(sent));
    EXPECT_TRUE(eventually([&] { return process.ask("take") == "got life"; }));
    EXPECT_EQ(process.ask("see target 7"), "yes");
    if (old_peer.valid()) {
      const Result<Transfer> stale = old_plan.submit({.deadline = 5s});
      if (!stale) {
        EXPECT_EQ(stale.error().code(), Code::kDisconnected);
      }
    }
    old_plan = plan;
    old_peer = peer;
    process.kill();
  }
}

void expect_gone_after(const Way& way, const std::string& command) {
  Here here(way, quick("here"));
  here.add("source", 4096);
  PeerProcess process = PeerProcess::start(peer_line(way, "there"));
  process.ask("region target 4096 foreign");
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", 4096);
  Transfer sent = must(plan.submit());
  must(finish(sent));
  const Instant from = now();
  process.send(command);
  const auto time = here.await_down(peer, from, 10s);
  ASSERT_TRUE(time) << command;
  print_time(command + " noticed after", *time);
  EXPECT_LE(*time, 2s);
  EXPECT_EQ(plan.submit().error().code(), Code::kDisconnected);
}

TEST_P(RealTest, ExitWithoutCloseIsNoticed) { expect_gone_after(GetParam(), "exit"); }
TEST_P(RealTest, ReturningFromMainIsNoticed) { expect_gone_after(GetParam(), "abandon"); }
TEST_P(RealTest, ExecIsNoticed) { expect_gone_after(GetParam(), "exec"); }

}  // namespace
}  // namespace hawser::real
