// How transfers end early: cancelled, or at their deadline; and that nothing touches the memory afterwards.

#include <algorithm>

#include "agent_suite.h"

namespace hawser::conformance {
namespace {

constexpr std::byte kCanary{0xca};
constexpr std::size_t kLarge = 12 << 20;

/// Ends `plan` after a number of moments in flight; gives its outcome.
Status cancel_after(Environment& env, const Plan& plan, int moments) {
  Transfer sent = must(plan.submit());
  for (int i = 0; i < moments; ++i) env.pass();
  sent.cancel();
  if (!env.eventually([&] { return sent.done(); })) throw std::runtime_error("a cancelled transfer did not end");
  return sent.status();
}

/// Where this side copies by itself, it knows how far it came.
bool copies_itself(const std::string& way) {
  return way.starts_with("shm") || way.starts_with("loopback") || way.starts_with("sim_mapped");
}

void expect_end(const Status& status, Operation op, const std::string& way) {
  if (status.ok()) return;
  EXPECT_EQ(status.code(), Code::kCancelled) << status.to_string();
  if (op == Operation::kWrite && copies_itself(way)) {
    EXPECT_NE(status.buffer(), BufferState::kUnknown) << status.to_string();
  }
}

/// What the outcome says of the target's bytes, which were all `before`, is true. Void writes leave zeros.
void expect_true(const Status& status, std::span<const std::byte> bytes, std::byte before, std::byte after) {
  if (status.buffer() == BufferState::kUntouched && !status.ok()) {
    EXPECT_TRUE(all_are(bytes, before)) << status.to_string();
  }
  if (status.ok() || status.buffer() == BufferState::kComplete) {
    EXPECT_TRUE(all_are(bytes, after)) << status.to_string();
  }
}

TEST_P(Conformance, ACancelledWriteReadsNoMore) {
  open_pair();
  Area source = add(a(), "source", kLarge), target = add(b(), "target", kLarge);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kLarge)}}, {{peer.range("target", 0, kLarge)}}));
  std::ranges::fill(target.bytes, std::byte{0});
  int cancelled = 0;
  for (int moments : {0, 1, 2, 3, 5, 8, 13}) {
    std::ranges::fill(source.bytes, std::byte{1});
    std::ranges::fill(target.bytes, std::byte{0});
    const Status status = cancel_after(env(), plan, moments);
    // The memory is ours again: what is in it now must never be seen at the target.
    std::ranges::fill(source.bytes, kCanary);
    cancelled += status.ok() ? 0 : 1;
    expect_end(status, Operation::kWrite, GetParam().name);
    pass(20);
    ASSERT_EQ(count_while_landing(target.bytes, kCanary), 0) << moments;
    expect_true(status, target.bytes, std::byte{0}, std::byte{1});
  }
  if (GetParam().polled) {
    EXPECT_GT(cancelled, 0);
  }
  std::ranges::fill(source.bytes, std::byte{2});
  must(run(plan));
  EXPECT_TRUE(all_are(target.bytes, std::byte{2}));
}

TEST_P(Conformance, ACancelledReadWritesNoMore) {
  open_pair();
  Area target = add(a(), "target", kLarge), source = add(b(), "source", kLarge);
  const Peer peer = meet();
  const Plan plan = must(a().plan_read(peer, {{peer.range("source", 0, kLarge)}}, {{target.range(0, kLarge)}}));
  std::ranges::fill(source.bytes, std::byte{1});
  for (int moments : {0, 1, 2, 3, 5, 8, 13}) {
    const Status status = cancel_after(env(), plan, moments);
    expect_end(status, Operation::kRead, GetParam().name);
    std::ranges::fill(target.bytes, kCanary);
    pass(20);
    ASSERT_TRUE(all_are(target.bytes, kCanary)) << moments;
  }
  must(run(plan));
  EXPECT_TRUE(all_are(target.bytes, std::byte{1}));
}

TEST_P(Conformance, CancelBeforeAPathIsUp) {
  open_pair();
  Area source = add(a(), "source", 1000), target = add(b(), "target", 1000);
  std::ranges::fill(target.bytes, std::byte{0});
  std::ranges::fill(source.bytes, std::byte{1});
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1000)}}, {{peer.range("target", 0, 1000)}}));
  Transfer sent = must(plan.submit({.notify = "never"}));
  const bool over = sent.done();
  sent.cancel();
  const Status status = finish(sent);
  if (!over && status.code() == Code::kCancelled) {
    // A driver may have brought the path up and offered the chunk to it meanwhile.
    const bool untouched = status.buffer() == BufferState::kUntouched;
    EXPECT_TRUE(untouched || !GetParam().polled);
    EXPECT_TRUE(!untouched || all_are(target.bytes, std::byte{0}));
  }
  must(run(plan, {.notify = "now"}));
  EXPECT_TRUE(env().eventually([&] {
    const auto got = b().take_notification();
    return got && got->text == "now";
  }));
}

TEST_P(Conformance, CancelAfterTheEndChangesNothing) {
  open_pair();
  Area source = add(a(), "source", 1000), target = add(b(), "target", 1000);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1000)}}, {{peer.range("target", 0, 1000)}}));
  Transfer sent = must(plan.submit());
  must(finish(sent));
  sent.cancel();
  pass(3);
  EXPECT_TRUE(sent.done());
  EXPECT_TRUE(sent.status().ok());
  EXPECT_TRUE(sent.wait(0s).ok());
}

TEST_P(Conformance, ManyAreCancelledAtOnce) {
  open_pair();
  constexpr std::size_t kSize = 200'000, kCount = 100;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < kCount; ++i) all.push_back(must(plan.submit()));
  for (std::size_t i = 0; i < kCount; i += 2) all[i].cancel();
  for (std::size_t i = 0; i < kCount; ++i) {
    const Status status = finish(all[i]);
    const bool good = status.ok() || (i % 2 == 0 && status.code() == Code::kCancelled);
    EXPECT_TRUE(good) << i << ": " << status.to_string();
  }
}

/// A peer that does not get on, and a transfer to it: either it needs no help, or it ends at its deadline.
TEST_P(Conformance, ADeadlineEndsWhatAStoppedPeerHolds) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area source = add(a(), "source", kLarge), target = add(b(), "target", kLarge);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kLarge)}}, {{peer.range("target", 0, kLarge)}}));
  std::ranges::fill(source.bytes, std::byte{1});
  std::ranges::fill(target.bytes, std::byte{0});
  env().freeze(b_);
  Transfer sent = must(plan.submit({.deadline = 100ms}));
  const Instant before = env().now();
  const Status status = finish(sent);
  EXPECT_LT(env().now() - before, 5s);
  std::ranges::fill(source.bytes, kCanary);
  if (!status.ok()) {
    EXPECT_TRUE(says(status, Code::kTimedOut, {"deadline", "b"}));
    EXPECT_GE(status.elapsed(), 100ms);
    EXPECT_LE(status.bytes_done(), kLarge);  // The last of it may have ended while the rest was waited for.
  }
  env().thaw(b_);
  pass(50);
  EXPECT_EQ(count_while_landing(target.bytes, kCanary), 0);
  std::ranges::fill(source.bytes, std::byte{2});
  // Where the target must tell that it is quiet, its silence may have brought it down: then it is met again.
  const Peer again = a_to_b();
  must(run(must(a().plan_write(again, {{source.range(0, kLarge)}}, {{again.range("target", 0, kLarge)}}))));
  EXPECT_TRUE(all_are(target.bytes, std::byte{2}));
}

TEST_P(Conformance, AReadFromAStoppedPeerEndsToo) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area target = add(a(), "target", kLarge), source = add(b(), "source", kLarge);
  const Peer peer = meet();
  const Plan plan = must(a().plan_read(peer, {{peer.range("source", 0, kLarge)}}, {{target.range(0, kLarge)}}));
  std::ranges::fill(source.bytes, std::byte{1});
  env().freeze(b_);
  Transfer sent = must(plan.submit({.deadline = 100ms}));
  const Status status = finish(sent);
  EXPECT_TRUE(status.ok() || status.code() == Code::kTimedOut) << status.to_string();
  std::ranges::fill(target.bytes, kCanary);
  env().thaw(b_);
  pass(100);
  EXPECT_TRUE(all_are(target.bytes, kCanary));
  must(run(plan));
  EXPECT_TRUE(all_are(target.bytes, std::byte{1}));
}

TEST_P(Conformance, AFirstUseOfAStoppedPeerEndsAtItsDeadline) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area source = add(a(), "source", 1000), target = add(b(), "target", 1000);
  std::ranges::fill(target.bytes, std::byte{0});
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1000)}}, {{peer.range("target", 0, 1000)}}));
  env().freeze(b_);
  const Status status = run(plan, {.notify = "never", .deadline = 50ms});
  EXPECT_TRUE(says(status, Code::kTimedOut, {"b"}));
  EXPECT_EQ(status.buffer(), BufferState::kUntouched);
  EXPECT_TRUE(all_are(target.bytes, std::byte{0}));
  env().thaw(b_);
  must(run(plan));
}

TEST_P(Conformance, NoCallBlocksPastItsDeadline) {
  HAWSER_NEEDS_TWO_AGENTS();
  AgentOptions slow = options("a");
  slow.peer_timeout = 60s;
  open_pair(slow, options("b"));
  Area source = add(a(), "source", kLarge), target = add(b(), "target", kLarge), word = add(a(), "word", 64);
  std::ranges::fill(word.bytes, std::byte{0});
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kLarge)}}, {{peer.range("target", 0, kLarge)}}));
  env().freeze(b_);
  constexpr Duration kTime = 40ms, kSlack = 3s;
  const auto timed = [&](std::string_view what, const std::function<void()>& call) {
    const Instant before = env().now();
    env().blocking(a(), call);
    EXPECT_LT(env().now() - before, kTime + kSlack) << what;
  };
  CompletionQueue queue = must(a().make_queue(16));
  std::array<Completion, 4> out;
  timed("connect", [&] {
    const Status connected = peer.connect(kTime);  // Some backends need no help of the peer for that.
    EXPECT_TRUE(connected.ok() || says(connected, Code::kTimedOut, {"connect", "b"})) << connected.to_string();
  });
  Transfer sent = must(plan.submit());
  timed("Transfer::wait", [&] {
    const Status status = sent.wait(kTime);
    EXPECT_TRUE(says(status, Code::kTimedOut, {"wait", "not final"}));
    EXPECT_EQ(status.scope(), Scope::kRequest);
  });
  EXPECT_FALSE(sent.done());
  timed("CompletionQueue::wait", [&] { (void)queue.wait(out, kTime); });
  timed("Agent::wait", [&] { (void)a().wait(kTime); });
  timed("wait_signal", [&] { EXPECT_EQ(a().wait_signal(word.range(0, 8), 1, kTime).code(), Code::kTimedOut); });
  timed("find_peer", [&] { EXPECT_EQ(a().find_peer("nobody", kTime).error().code(), Code::kNotFound); });
  timed("Region::close", [&] { EXPECT_TRUE(source.region.close(kTime).ok()); });
  EXPECT_TRUE(sent.done());
  EXPECT_EQ(sent.status().code(), Code::kCancelled);
  Status closed;
  timed("Agent::close", [&] { closed = a().close(kTime); });
  env().thaw(b_);
}

TEST_P(Conformance, WaitSaysHowItEnded) {
  open_pair();
  constexpr std::size_t kSize = 3 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = a_to_b();
  fill(source.bytes, 1);
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  Transfer sent = must(plan.submit());
  Status status;
  env().blocking(a(), [&] { status = sent.wait(); });
  must(status);
  EXPECT_TRUE(holds(target.bytes, 1));
  EXPECT_TRUE(sent.wait(0s).ok());
}

TEST_P(Conformance, WhatHasOneLabelEndsTogether) {
  open_pair();
  constexpr std::size_t kSize = 4 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize), words = add_memory(a(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = meet();
  const Plan small = must(a().plan_write(peer, {{source.range(0, 8)}}, {{peer.range("target", 0, 8)}}));
  const Plan large = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  const SignalWord after{.word = words.range(0, 8), .value = 1};
  std::vector<Transfer> sevens, eights;
  for (int i = 0; i < 3; ++i) sevens.push_back(must(small.submit({.label = 7, .after = &after})));
  for (int i = 0; i < 2; ++i) eights.push_back(must(small.submit({.label = 8, .after = &after})));
  EXPECT_EQ(must(a().end(7)), 3U);
  for (Transfer& each : sevens) EXPECT_TRUE(says(finish(each), Code::kCancelled, {"label", b().name()}));
  EXPECT_EQ(must(a().end(7)), 0U);
  for (const Transfer& each : eights) EXPECT_FALSE(each.done());
  EXPECT_EQ(must(a().end(8, Status(Code::kFailed, "the request was given up"))), 2U);
  for (Transfer& each : eights) EXPECT_TRUE(says(finish(each), Code::kFailed, {"given up"}));
  // What is under way ends once it is quiet, and touches nothing from then on.
  std::ranges::fill(source.bytes, std::byte{1});
  Transfer sent = must(large.submit({.label = 9}));
  const std::size_t ended = must(a().end(9));
  EXPECT_EQ(finish(sent).code(), ended == 1 ? Code::kCancelled : Code::kOk);
  std::ranges::fill(source.bytes, std::byte{0xca});
  pass(10);
  EXPECT_EQ(count_while_landing(target.bytes, std::byte{0xca}), 0);
  EXPECT_TRUE(says(a().end(0).error(), Code::kInvalid, {"end", "label 0"}));
  EXPECT_TRUE(says(a().end(1, Status()).error(), Code::kInvalid, {"end"}));
}

}  // namespace
}  // namespace hawser::conformance
