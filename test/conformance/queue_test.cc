// Completion queues: cookies, bounds, hints, and descriptors for a loop of one's own.

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <map>
#include <set>

#include "agent_suite.h"
#include "base/bytes.h"

namespace hawser::conformance {
namespace {

bool readable(int fd, int timeout_ms = 0) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, timeout_ms) == 1;
}

/// Takes all there is and sorts it by kind.
struct Seen {
  std::multiset<std::uint64_t> cookies;
  std::uint64_t bytes = 0;
  std::map<CompletionKind, std::multiset<std::uint64_t>> hints;
  std::vector<Status> errors;

  std::size_t take(CompletionQueue& queue) {
    std::array<Completion, 7> out;
    std::size_t all = 0;
    while (const std::size_t count = queue.poll(out)) {
      all += count;
      for (std::size_t i = 0; i < count; ++i) take(out[i]);
    }
    return all;
  }
  void take(const Completion& one) {
    if (one.kind != CompletionKind::kTransfer) {
      hints[one.kind].insert(one.cookie);
      return;
    }
    cookies.insert(one.cookie);
    bytes += one.bytes;
    if (!one.status.ok()) errors.push_back(one.status);
  }
};

TEST_P(Conformance, EveryTransferIsReportedOnceWithItsCookie) {
  open_pair();
  Area source = add(a(), "source", 60'000), target = add(b(), "target", 60'000);
  const Peer peer = a_to_b();
  CompletionQueue queue = must(a().make_queue(1000));
  EXPECT_EQ(queue.capacity(), 1000U);
  Seen seen;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::size_t size = 1 + i * 199;
    const Plan plan = must(a().plan_write(peer, {{source.range(0, size)}}, {{peer.range("target", 0, size)}}));
    Transfer sent = must(plan.submit({.queue = &queue, .cookie = i * i}));
    bytes += size;
    env().eventually([&] { return sent.done(); });
  }
  EXPECT_TRUE(env().eventually([&] {
    seen.take(queue);
    return seen.cookies.size() == 300;
  }));
  for (std::uint64_t i = 0; i < 300; ++i) EXPECT_EQ(seen.cookies.count(i * i), 1U) << i;
  EXPECT_EQ(seen.bytes, bytes);
  EXPECT_TRUE(seen.errors.empty());
  pass(5);
  EXPECT_EQ(seen.take(queue), 0U);
}

TEST_P(Conformance, AQueueIsBoundedAndTellsOfRoom) {
  open_pair();
  Area source = add(a(), "source", 64), target = add(b(), "target", 64);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 0, 64)}}));
  CompletionQueue queue = must(a().make_queue(4));
  std::vector<Transfer> all;
  for (std::uint64_t i = 0; i < 4; ++i) all.push_back(must(plan.submit({.queue = &queue, .cookie = i})));
  EXPECT_TRUE(says(plan.submit({.queue = &queue}).error(), Code::kBusy, {"submit", "completion queue", "poll"}));
  for (Transfer& each : all) must(finish(each));
  EXPECT_TRUE(says(plan.submit({.queue = &queue}).error(), Code::kBusy, {"completion queue"}));
  Seen seen;
  EXPECT_TRUE(env().eventually([&] {
    seen.take(queue);
    return seen.cookies.size() == 4 && seen.hints.contains(CompletionKind::kRoom);
  }));
  all.push_back(must(plan.submit({.queue = &queue, .cookie = 9})));
  EXPECT_TRUE(env().eventually([&] {
    seen.take(queue);
    return seen.cookies.contains(9);
  }));
}

TEST_P(Conformance, QueuesReportFailures) {
  open_pair();
  Area source = add(a(), "source", 64), target = add(b(), "target", 64), words = add(a(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 0, 64)}}));
  CompletionQueue queue = must(a().make_queue(16));
  const SignalWord never{.word = words.range(0, 8), .value = 1};
  Transfer late = must(plan.submit({.deadline = 10ms, .queue = &queue, .cookie = 1, .after = &never}));
  Transfer cancelled = must(plan.submit({.queue = &queue, .cookie = 2, .after = &never}));
  cancelled.cancel();
  Seen seen;
  EXPECT_TRUE(env().eventually([&] {
    seen.take(queue);
    return seen.cookies.size() == 2;
  }));
  ASSERT_EQ(seen.errors.size(), 2U);
  EXPECT_EQ(seen.errors[0].code(), Code::kCancelled);
  EXPECT_EQ(seen.errors[1].code(), Code::kTimedOut);
  EXPECT_EQ(seen.bytes, 0U);
}

TEST_P(Conformance, QueuesHintAtOtherNews) {
  open_pair();
  CompletionQueue queue = must(b().make_queue(16));
  const Peer peer = a_to_b();
  must(b().open_channel(40, 8));
  must(b().open_channel(41, 8));
  must(peer.notify("x"));
  for (const std::uint32_t channel : {40U, 41U, 40U}) {
    ASSERT_TRUE(env().eventually([&] { return peer.send(channel, {}).has_value(); }));
  }
  Seen seen;
  EXPECT_TRUE(env().eventually([&] {
    seen.take(queue);
    return seen.hints[CompletionKind::kNotification].contains(0) && seen.hints[CompletionKind::kMessage].contains(40) &&
           seen.hints[CompletionKind::kMessage].contains(41) && seen.hints.contains(CompletionKind::kPeer);
  }));
  EXPECT_TRUE(b().take_notification());
  EXPECT_TRUE(b().take_event());
}

TEST_P(Conformance, WaitingOnAQueueMakesProgress) {
  open_pair();
  constexpr std::size_t kSize = 2 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = a_to_b();
  fill(source.bytes, 1);
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  CompletionQueue queue = must(a().make_queue(16));
  Transfer sent = must(plan.submit({.queue = &queue, .cookie = 5}));
  std::array<Completion, 4> out;
  bool got = false;
  env().blocking(a(), [&] {
    const Instant deadline = env().now() + kPatience;
    while (!got && env().now() < deadline) {
      const std::size_t count = queue.wait(out, 1s);
      for (std::size_t i = 0; i < count; ++i)
        got = got || (out[i].kind == CompletionKind::kTransfer && out[i].cookie == 5);
    }
  });
  EXPECT_TRUE(got);
  EXPECT_TRUE(sent.done());
  EXPECT_TRUE(holds(target.bytes, 1));
  std::size_t count = 1;
  const Instant before = env().now();
  env().blocking(a(), [&] {
    while (queue.poll(out) > 0) {
    }
    count = queue.wait(out, 20ms);
  });
  EXPECT_EQ(count, 0U);
  EXPECT_GE(env().now() - before, 20ms);
}

TEST_P(Conformance, AQueueHasADescriptor) {
  open_pair();
  Area source = add(a(), "source", 64), target = add(b(), "target", 64);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 0, 64)}}));
  CompletionQueue queue = must(a().make_queue(64));
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {}};
  ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, queue.event_fd(), &event), 0);
  Seen seen;
  seen.take(queue);
  EXPECT_FALSE(readable(epoll));
  for (std::uint64_t round = 1; round <= 20; ++round) {
    std::vector<Transfer> all;
    for (int i = 0; i < 3; ++i) all.push_back(must(plan.submit({.queue = &queue, .cookie = round})));
    for (Transfer& each : all) must(finish(each));
    EXPECT_TRUE(readable(epoll, 1000)) << round;
    Completion one;
    ASSERT_EQ(queue.poll({&one, 1}), 1U);
    // A transfer is done a moment before its completion is in the queue.
    EXPECT_TRUE(readable(epoll, 1000)) << "there are entries left";
    seen.take(one);
    EXPECT_TRUE(env().eventually([&] {
      seen.take(queue);
      return seen.cookies.count(round) == 3;
    }));
    EXPECT_FALSE(readable(epoll)) << round;
  }
  ::close(epoll);
}

TEST_P(Conformance, AnAgentHasADescriptor) {
  HAWSER_NEEDS_REAL_TIME();
  if (!GetParam().polled) GTEST_SKIP() << "with a driver nobody else needs the agent's descriptor";
  open_pair();
  constexpr std::size_t kSize = 3 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = a_to_b();
  const int fds[2] = {a().event_fd(), b().event_fd()};
  ASSERT_GE(fds[0], 0);
  ASSERT_GE(fds[1], 0);
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  for (int round = 0; round < 5; ++round) {
    fill(source.bytes, round);
    Transfer sent = must(plan.submit({.notify = "done"}));
    // Each agent is polled only when its descriptor says so.
    const Instant deadline = env().now() + kPatience;
    bool notified = false;
    while ((!sent.done() || !notified) && env().now() < deadline) {
      pollfd both[2] = {{.fd = fds[0], .events = POLLIN, .revents = 0}, {.fd = fds[1], .events = POLLIN, .revents = 0}};
      ASSERT_GT(::poll(both, 2, 5000), 0) << "nothing became readable in round " << round;
      if (both[0].revents != 0) a().poll();
      if (both[1].revents != 0) b().poll();
      notified = notified || b().take_notification().has_value();
    }
    ASSERT_TRUE(sent.done() && notified);
    EXPECT_TRUE(holds(target.bytes, round));
  }
}

TEST_P(Conformance, WrongQueuesAreNamed) {
  open_pair();
  EXPECT_TRUE(says(a().make_queue(0).error(), Code::kInvalid, {"make_queue", "capacity 0"}));
  EXPECT_TRUE(says(a().make_queue(std::size_t{1} << 40).error(), Code::kInvalid, {"make_queue", "1048576"}));
}

}  // namespace
}  // namespace hawser::conformance
