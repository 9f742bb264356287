// Two threads on everything, for ThreadSanitizer and for those who share an agent.

#include <atomic>
#include <thread>

#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::size_t kSize = 200'000;

struct Both {
  Here a, b;
  Peer to_b, to_a;

  explicit Both(const Way& way) : a(way, quick("a")), b(way, quick("b")) {
    a.add("source", 4 * kSize);
    b.add("target", 4 * kSize);
    to_b = must(a.agent().add_peer(must(b.agent().card())));
    to_a = must(b.agent().add_peer(must(a.agent().card())));
    must(b.agent().open_channel(20, 16));
    must(to_b.connect(kPatience));
  }
};

/// Runs all of these at once, each again and again, until the time is over.
void at_once(Duration time, const std::vector<std::function<void(std::uint64_t)>>& works) {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (const auto& work : works) {
    threads.emplace_back([&over, &work] {
      for (std::uint64_t i = 0; !over.load(std::memory_order_relaxed); ++i) work(i);
    });
  }
  std::this_thread::sleep_for(time);
  over.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
}

TEST_P(RealTest, TwoThreadsSubmitOnePlan) {
  Both both(GetParam());
  const Plan plan = both.a.plan_write(both.to_b, "source", "target", kSize);
  std::atomic<std::uint64_t> good{0};
  const auto write = [&](std::uint64_t i) {
    Transfer sent = must(plan.submit({.priority = static_cast<Priority>(i % 3)}));
    if (i % 7 == 3) sent.cancel();
    const Status status = sent.wait(kPatience);
    if (status.ok()) ++good;
    EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.to_string();
  };
  at_once(400ms, {write, write});
  EXPECT_GT(good.load(), 0U);
  EXPECT_EQ(both.a.agent().counters().total.writes, good.load());
}

TEST_P(RealTest, TwoThreadsOnEverything) {
  Both both(GetParam());
  Agent& a = both.a.agent();
  Agent& b = both.b.agent();
  const Plan write = both.a.plan_write(both.to_b, "source", "target", kSize);
  const Plan small = both.a.plan_write(both.to_b, "source", "target", 64);
  CompletionQueue queue = must(a.make_queue(64));
  const auto submits = [&](std::uint64_t i) {
    Result<Transfer> sent = (i % 2 == 0 ? write : small).submit({.notify = "n", .queue = &queue, .cookie = i});
    if (sent && i % 3 == 0) sent->cancel();
    if (sent) (void)sent->wait(kPatience);
  };
  const auto reads_news = [&](std::uint64_t) {
    while (b.take_notification()) {
    }
    while (b.take_message(20)) {
    }
    (void)b.take_event();
    std::array<Completion, 16> out;
    while (queue.poll(out) > 0) {
    }
    std::this_thread::yield();
  };
  const auto talks = [&](std::uint64_t) {
    (void)both.to_b.notify("t");
    (void)both.to_b.send(20, {});
    std::this_thread::yield();
  };
  const auto registers = [&](std::uint64_t i) {
    std::vector<std::byte> bytes(4096);
    Region region = must(b.add_region({.name = "r" + std::to_string(i), .bytes = bytes, .device = {}}));
    const Peer peer = must(a.add_peer(must(b.card())));
    const Plan plan = must(
        a.plan_write(peer, {{both.a.memory("source").region.range(0, 4096)}}, {{peer.range(region.name(), 0, 4096)}}));
    if (Result<Transfer> sent = plan.submit()) (void)sent->wait(kPatience);
    must(region.close(kPatience));
  };
  const auto looks = [&](std::uint64_t) {
    (void)a.counters();
    (void)a.explain(write);
    (void)a.card();
    (void)a.peers();
    (void)a.backends();
    (void)a.poll();
    (void)b.wait(100us);
  };
  at_once(700ms, {submits, submits, reads_news, talks, registers, looks});
  EXPECT_EQ(both.to_b.state(), PeerState::kUp);
}

TEST_P(RealTest, TwoThreadsOpenAndCloseAgents) {
  Here here(GetParam(), quick("here"));
  here.add("source", 4096);
  const auto visits = [&](std::uint64_t i) {
    Here guest(GetParam(), quick("guest" + std::to_string(i)));
    guest.add("guest", 4096);
    const Peer peer = must(here.agent().add_peer(must(guest.agent().card())));
    const Plan plan = here.plan_write(peer, "source", "guest", 4096);
    Transfer sent = must(plan.submit({.notify = "x"}));
    must(sent.wait(kPatience));
  };
  at_once(500ms, {visits, visits});
  EXPECT_TRUE(eventually([&] { return here.agent().peers().empty(); }));
}

TEST_P(RealTest, TwoThreadsWaitWithoutADriver) {
  AgentOptions options = quick("polled");
  options.backends = {{GetParam().backend, {}}};
  Agent polled = must(Agent::open(options));
  std::vector<std::byte> bytes(4 * kSize);
  Region region = must(polled.add_region({.name = "polled", .bytes = bytes, .device = {}}));
  Here b(GetParam(), quick("b"));
  b.add("target", 4 * kSize);
  const Peer peer = must(polled.add_peer(must(b.agent().card())));
  const Plan plan = must(polled.plan_write(peer, {{region.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  std::atomic<std::uint64_t> done{0};
  const auto write = [&](std::uint64_t) {
    Transfer sent = must(plan.submit());
    must(sent.wait(kPatience));
    ++done;
  };
  at_once(400ms, {write, write, [&](std::uint64_t) { (void)polled.poll(); }});
  EXPECT_GT(done.load(), 0U);
  must(polled.close(5s));
}

}  // namespace
}  // namespace hawser::real
