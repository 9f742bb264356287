// A process is stopped (SIGSTOP): in each phase of its peer's work, and while it is inside of its peer's memory.

#include <set>

#include "base/rng.h"
#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::size_t kSize = 8 << 20;
constexpr std::byte kCanary{0xca};
constexpr Duration kHeartbeat = 100ms * kScale;
constexpr Duration kPeerTimeout = 10 * kHeartbeat;
constexpr int kTries = 4;

std::string region_line(const Way& way, const std::string& name) {
  return "region " + name + " " + std::to_string(kSize) + (way.allocated ? " allocated" : " foreign");
}

TEST_P(RealTest, StoppedBeforeConnecting) {
  Here here(GetParam(), quick("here"));
  here.add("source", kSize);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
  process.ask(region_line(GetParam(), "target"));
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", kSize);
  process.stop();
  const Instant from = now();
  Transfer sent = must(plan.submit({.deadline = 300ms}));
  const Status status = finish(sent, 10s);
  EXPECT_LE(now() - from, 3s);
  EXPECT_TRUE(status.code() == Code::kTimedOut || status.code() == Code::kDisconnected) << status.to_string();
  EXPECT_EQ(status.buffer(), BufferState::kUntouched);
  process.resume();
  const Peer again = must(here.agent().add_peer(process.card()));
  Transfer good = must(here.plan_write(again, "source", "target", kSize).submit());
  EXPECT_TRUE(finish(good).ok()) << good.status().to_string();
}

/// The stopped process is not needed: its NIC goes on serving, or whoever writes copies by itself.
bool needs_no_peer(const Way& way) { return way.backend == "verbs" || way.backend == "shm"; }

/// How long it took until a stopped peer was suspect, and until it was given up.
struct Noticed {
  Duration suspect = Duration::max(), down = Duration::max();
  void take_best(const Noticed& other) {
    suspect = std::min(suspect, other.suspect);
    down = std::min(down, other.down);
  }
};

Noticed await_end(Here& here, const Peer& peer, Instant from) {
  const auto suspect = here.await_event(PeerEvent::Kind::kSuspect, peer, from, 10s);
  if (!suspect) throw std::runtime_error("the stop was not noticed");
  EXPECT_EQ(peer.state(), PeerState::kSuspect);
  const auto down = here.await_down(peer, from, 10s);
  if (!down) throw std::runtime_error("the peer was not given up");
  return {.suspect = *suspect, .down = *down};
}

/// Nobody waits for an idle peer: its first heartbeat comes after ten intervals, which are in the place of one.
Noticed promised(const Way& way, bool in_flight) {
  const Duration pause = in_flight ? Duration::zero() : 9 * kHeartbeat;
  return {.suspect = pause + 3 * kHeartbeat, .down = pause + way.peer_timeout(kPeerTimeout)};
}

bool is_in_time(const Noticed& noticed, const Noticed& promise) {
  const Duration slack = 2 * kHeartbeat * kScale;  // Over shm a word is heard when the next heartbeat is due.
  return noticed.suspect <= promise.suspect + slack && noticed.down <= promise.down + slack;
}

/// A process is met, stopped, noticed, given up, continued and met again.
Noticed notice_stop(const Way& way, bool in_flight) {
  AgentOptions options = quick("here");
  options.heartbeat = kHeartbeat;
  options.peer_timeout = kPeerTimeout;
  Here here(way, options);
  here.add("source", kSize);
  PeerProcess process = PeerProcess::start(peer_line(way, "there"));
  process.ask(region_line(way, "target"));
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", kSize);
  Transfer first = must(plan.submit());
  must(finish(first));
  process.stop();
  const Instant from = now();
  std::vector<Transfer> all;
  for (int i = 0; in_flight && i < 3; ++i) all.push_back(must(plan.submit({.notify = "x"})));
  const Noticed noticed = await_end(here, peer, from);
  print_time(in_flight ? "stop in flight noticed after" : "stop of an idle peer noticed after", noticed.suspect);
  print_time("given up after", noticed.down);
  for (Transfer& each : all) {
    const Status status = finish(each, kPatience);
    if (status.ok() && needs_no_peer(way)) continue;
    EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
    EXPECT_NE(status.to_string().find("there"), std::string::npos) << status.to_string();
    EXPECT_NE(status.to_string().find("silent"), std::string::npos) << status.to_string();
  }
  process.resume();
  // It lives: who asks again gets on with it.
  const Peer again = must(here.agent().add_peer(process.card()));
  Transfer good = must(here.plan_write(again, "source", "target", kSize).submit());
  EXPECT_TRUE(finish(good).ok()) << good.status().to_string();
  return noticed;
}

TEST_P(RealTest, ADrivenPeerThatStopsIsSuspectAfterThreeHeartbeatsAndDownAfterPeerTimeout) {
  for (const bool in_flight : {false, true}) {
    const Noticed promise = promised(GetParam(), in_flight);
    Noticed best;
    for (int attempt = 0; attempt < kTries && !is_in_time(best, promise); ++attempt) {
      const Noticed noticed = notice_stop(GetParam(), in_flight);
      EXPECT_GE(noticed.suspect, kHeartbeat);
      EXPECT_GE(noticed.down, kPeerTimeout - 2 * kHeartbeat);
      best.take_best(noticed);
    }
    EXPECT_TRUE(is_in_time(best, promise)) << "in flight: " << in_flight;
  }
}

/// What was under way goes on with the process, and so does the session: it was suspect, and never down.
TEST_P(RealTest, AStopOfTwoSecondsEndsNothing) {
  AgentOptions options = quick("here");
  options.heartbeat = 250ms;
  options.peer_timeout = 5s * kScale;
  Here here(GetParam(), options);
  here.add("source", kSize);
  here.add("back", kSize);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there", "driven=1 places=64"));
  process.ask(region_line(GetParam(), "target"));
  process.ask("put target 7");
  const Peer peer = here.meet(process);
  const Plan write = here.plan_write(peer, "source", "target", 64 * 1024);
  const Plan read = here.plan_read(peer, "target", "back", kSize);
  must(peer.connect(kPatience));
  std::ranges::fill(here.memory("source").bytes, std::byte{3});
  while (here.agent().take_event()) continue;
  std::vector<Transfer> all;
  const auto submit_some = [&](int count) {
    for (int i = 0; i < count; ++i) all.push_back(must(write.submit({.notify = std::to_string(all.size())})));
  };
  submit_some(10);
  process.stop();
  const Instant stopped = now();
  submit_some(2);
  Transfer back = must(read.submit());
  // Over shm this agent may copy all by itself, and an idle peer is asked later. This waits for the peer in any case.
  AtomicOp asked = must(fetch_add(here.agent(), peer.range("target", 0, 8), 0));
  EXPECT_TRUE(here.await_event(PeerEvent::Kind::kSuspect, peer, stopped, 2s * kScale));
  EXPECT_EQ(peer.state(), PeerState::kSuspect);
  submit_some(1);  // Nor does a suspect refuse anything.
  eventually([&] { return now() - stopped >= 2s; });
  process.resume();
  for (Transfer& each : all) must(finish(each));
  must(finish(back));
  must(asked.wait(kPatience));
  EXPECT_TRUE(here.await_event(PeerEvent::Kind::kUp, peer, stopped));
  EXPECT_EQ(peer.state(), PeerState::kUp);
  std::multiset<std::string> expected, got;  // Transfers of several streams keep no order.
  for (std::size_t i = 0; i < all.size(); ++i) expected.insert("got " + std::to_string(i));
  EXPECT_TRUE(eventually([&] {
    if (const std::string one = process.ask("take"); one != "none") got.insert(one);
    return got.size() >= expected.size();
  }));
  EXPECT_EQ(process.ask("take"), "none");
  EXPECT_EQ(got, expected) << "each once";
  for (std::optional<PeerEvent> event; (event = here.agent().take_event());) {
    EXPECT_NE(event->kind, PeerEvent::Kind::kDown) << event->cause.to_string();
  }
}

/// Nor does it end well: the peer may never come back.
TEST_P(RealTest, DeadlinesRunOnWhileAPeerIsSuspect) {
  AgentOptions options = quick("here");
  options.heartbeat = kHeartbeat;
  options.peer_timeout = kPatience;
  Here here(GetParam(), options);
  here.add("back", kSize);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
  process.ask(region_line(GetParam(), "target"));
  const Peer peer = here.meet(process);
  const Plan read = here.plan_read(peer, "target", "back", kSize);
  must(peer.connect(kPatience));
  process.stop();
  ASSERT_TRUE(here.await_event(PeerEvent::Kind::kSuspect, peer, now()));
  const Instant from = now();
  Transfer late = must(read.submit({.deadline = 300ms}));
  AtomicOp asked = must(fetch_add(here.agent(), peer.range("target", 0, 8), 1, {.deadline = 300ms}));
  const Status status = finish(late);
  EXPECT_TRUE(status.code() == Code::kTimedOut || (status.ok() && needs_no_peer(GetParam()))) << status.to_string();
  EXPECT_EQ(asked.wait(kPatience).code(), Code::kTimedOut);
  EXPECT_LE(now() - from, 3s * kScale);
  EXPECT_EQ(peer.state(), PeerState::kSuspect) << "a deadline says nothing of the peer";
  process.resume();
  Transfer good = must(read.submit());
  must(finish(good));
  EXPECT_TRUE(here.await_event(PeerEvent::Kind::kUp, peer, now()));
}

/// The process opened the connection, and its card was never loaded here.
TEST_P(RealTest, ADrivenOpenerThatStopsIsDownAfterPeerTimeout) {
  const Noticed promise = promised(GetParam(), false);  // Nobody here waits for it.
  Noticed best;
  for (int attempt = 0; attempt < kTries && !is_in_time(best, promise); ++attempt) {
    AgentOptions options = quick("here");
    options.heartbeat = kHeartbeat;
    options.peer_timeout = kPeerTimeout;
    Here here(GetParam(), options);
    here.add("target", kSize);
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
    process.ask(region_line(GetParam(), "source"));
    const std::string name = process.know(must(here.agent().card()));
    process.ask("plan write source " + name + " target " + std::to_string(kSize));
    process.ask("submit notify=hello");
    ASSERT_TRUE(eventually([&] { return here.agent().take_notification().has_value(); }));
    const std::vector<Peer> peers = here.agent().peers();
    ASSERT_EQ(peers.size(), 1u);
    process.stop();
    const Noticed noticed = await_end(here, peers.front(), now());
    print_time("stop of an opener noticed after", noticed.suspect);
    print_time("given up after", noticed.down);
    EXPECT_GE(noticed.suspect, kHeartbeat);
    best.take_best(noticed);
    const std::string why = peers.front().notify("x").to_string();
    EXPECT_NE(why.find("'there' was given up"), std::string::npos) << why;
    EXPECT_NE(why.find("silent"), std::string::npos) << why;
    process.resume();
  }
  EXPECT_TRUE(is_in_time(best, promise));
}

TEST_P(RealTest, APolledPeerThatStopsIsJudgedByDeadlines) {
  AgentOptions options = quick("here");
  options.heartbeat = 100ms;
  Here here(GetParam(), options);
  Memory& source = here.add("source", kSize);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there", "driven=0"));
  process.ask(region_line(GetParam(), "target"));
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", kSize);
  std::ranges::fill(source.bytes, std::byte{1});
  Transfer first = must(plan.submit());
  must(finish(first));
  process.stop();
  Transfer stuck = must(plan.submit({.deadline = 800ms}));
  const Status status = finish(stuck, 10s);
  EXPECT_TRUE(status.ok() || status.code() == Code::kTimedOut) << status.to_string();
  EXPECT_NE(peer.state(), PeerState::kDown);  // Eight heartbeats went by.
  std::ranges::fill(source.bytes, kCanary);
  process.resume();
  (void)process.ask("card");
  const std::string seen = process.ask("see target 1");
  EXPECT_EQ(seen, "yes");
  std::ranges::fill(source.bytes, std::byte{2});
  Transfer good = must(plan.submit({.notify = "again"}));
  EXPECT_TRUE(finish(good).ok()) << good.status().to_string();
  EXPECT_TRUE(eventually([&] { return process.ask("take") == "got again"; }));
  EXPECT_EQ(process.ask("see target 2"), "yes");
}

TEST_P(RealTest, StoppedAtNotifications) {
  Here here(GetParam(), quick("here"));
  here.add("source", 4096);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there", "driven=0 places=32"));
  process.ask("region target 4096 foreign");
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", 4096);
  must(peer.connect(kPatience));
  process.stop();
  std::vector<Transfer> all;
  int sent = 0;
  for (int i = 0; i < 100; ++i) {
    Result<Transfer> one = plan.submit({.notify = kPlace, .deadline = 20s});
    if (!one) {
      EXPECT_EQ(one.error().code(), Code::kBusy) << one.error().to_string();
      break;
    }
    ++sent;
    all.push_back(std::move(*one));
  }
  EXPECT_GE(sent, 13);  // What every agent grants unasked.
  EXPECT_LE(sent, 32);
  process.resume();
  for (Transfer& each : all) must(finish(each));
  int got = 0;
  EXPECT_TRUE(eventually([&] {
    if (process.ask("take") != "none") ++got;
    return got == sent;
  }));
  EXPECT_EQ(process.ask("take"), "none");
}

/// Looks while others write: a test may, a program may not.
__attribute__((no_sanitize("thread"))) std::byte first_now(std::span<const std::byte> bytes) {
  return *static_cast<const volatile std::byte*>(bytes.data());
}

/// The process writes without end into a region here, is stopped anywhere, and the region is closed meanwhile. Only
/// kOk means that nobody is inside: then the memory is ours, and stays as it is once the process goes on.
TEST_P(RealTest, TheInitiatorStopsInsideWhileTheRegionCloses) {
  // Over tcp nobody else is ever inside. Over emulated RDMA devices a round takes ten seconds.
  const int rounds = GetParam().backend == "shm" ? 24 : GetParam().backend == "verbs" ? 2 : 8;
  int inside = 0;
  base::Rng rng(1);
  Here here(GetParam(), quick("here"));
  for (int round = 0; round < rounds; ++round) {
    // Polled: heartbeats do not end the connection of the process while it is stopped.
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there", "driven=0"));
    Memory& target = here.add("target-" + std::to_string(round), kSize);
    process.ask(region_line(GetParam(), "source"));
    std::string here_there;
    (void)here.meet(process, &here_there);
    process.ask("plan write source " + here_there + " target-" + std::to_string(round) + " " + std::to_string(kSize));
    process.ask("put source 1");
    process.ask("flood");
    ASSERT_TRUE(eventually([&] { return first_now(target.bytes) == std::byte{1}; })) << "nothing is written";
    const Duration delay = std::chrono::microseconds(rng.below(3000));
    const Instant from = now();
    eventually([&] { return now() - from >= delay; });
    process.stop();
    const Status closed = target.region.close(30ms);
    if (closed.ok()) {
      std::ranges::fill(target.bytes, kCanary);
    } else {
      ++inside;
      EXPECT_EQ(closed.code(), Code::kTimedOut) << closed.to_string();
      EXPECT_NE(closed.to_string().find("there"), std::string::npos) << "names no holder: " << closed.to_string();
      EXPECT_EQ(closed.to_string().find("abandoned") != std::string::npos, GetParam().allocated) << closed.to_string();
    }
    process.resume();
    if (!closed.ok()) {
      must(target.region.close(kPatience));
      std::ranges::fill(target.bytes, kCanary);
    }
    (void)process.ask("card");
    (void)process.ask("card");
    ASSERT_TRUE(all_are(target.bytes, kCanary)) << "round " << round;
    process.kill();
  }
  RecordProperty("inside", inside);
  if (GetParam().backend == "shm") {
    EXPECT_GT(inside, 0) << "the process was never stopped inside: nothing was tested";
  }
  std::printf("             stopped inside in %d of %d rounds\n", inside, rounds);
}

TEST_P(RealTest, ATargetThatNeverReads) {
  Here here(GetParam(), quick("here"));
  here.add("source", 64 * 1024);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there", "driven=1 places=32"));
  process.ask("region target 65536 foreign");
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", 64 * 1024);
  must(peer.connect(kPatience));
  int sent = 0, refused = 0;
  std::vector<Transfer> all;
  for (const Instant until = now() + 500ms; now() < until && refused < 1000;) {
    Result<Transfer> one = plan.submit({.notify = kPlace});
    if (one) {
      all.push_back(std::move(*one));
      ++sent;
    } else {
      ASSERT_EQ(one.error().code(), Code::kBusy) << one.error().to_string();
      ++refused;
    }
  }
  EXPECT_LE(sent, 32);
  for (Transfer& each : all) must(finish(each));
  Transfer plain = must(plan.submit());
  EXPECT_TRUE(finish(plain).ok());
  for (int i = 0; i < sent; ++i) EXPECT_TRUE(eventually([&] { return process.ask("take") == "got " + kPlace; }));
  EXPECT_TRUE(eventually([&] { return plan.submit({.notify = "more"}).error().ok(); }));
}

}  // namespace
}  // namespace hawser::real
