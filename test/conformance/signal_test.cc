// Signals: words that rise once per transfer, after its bytes; words waited for before and set after.

#include <time.h>

#include <atomic>

#include "agent_suite.h"

namespace hawser::conformance {
namespace {

constexpr std::size_t kWord = 8;

TEST_P(Conformance, SignalsRiseOncePerTransfer) {
  open_pair();
  constexpr std::size_t kSize = 500'000;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize), words = add_memory(b(), "words", 4096);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  const SignalTarget signal{.word = peer.range("words", 64, kWord), .add = 7};
  for (std::uint64_t round = 1; round <= 20; ++round) {
    fill(source.bytes, round);
    Transfer sent = must(plan.submit({.signal = &signal}));
    Status reached;
    env().blocking(b(), [&] { reached = b().wait_signal(words.range(64, kWord), 7 * round, kPatience); });
    ASSERT_TRUE(reached.ok()) << reached.to_string();
    ASSERT_TRUE(holds(target.bytes, round));
    must(finish(sent));
    EXPECT_EQ(must(b().read_signal(words.range(64, kWord))), 7 * round);
  }
  EXPECT_TRUE(all_are(words.bytes.first(64), std::byte{0}));
  EXPECT_TRUE(all_are(words.bytes.subspan(72), std::byte{0}));
}

TEST_P(Conformance, SignalAndNotificationGoTogether) {
  open_pair();
  Area source = add(a(), "source", 100), target = add(b(), "target", 100), words = add_memory(b(), "words", 4096);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 100)}}, {{peer.range("target", 0, 100)}}));
  const SignalTarget signal{.word = peer.range("words", 0, kWord)};
  for (std::uint64_t i = 1; i <= 100; ++i) {
    Transfer sent = submit_soon(plan, {.notify = "both", .signal = &signal});
    EXPECT_EQ(next_notification(b()).text, "both");
    EXPECT_EQ(must(b().read_signal(words.range(0, kWord))), i);
    must(finish(sent));
  }
}

TEST_P(Conformance, ManySignalsAddUp) {
  open_pair();
  constexpr int kCount = 3000;
  Area source = add(a(), "source", 100), target = add(b(), "target", 100), words = add_memory(b(), "words", 4096);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 100)}}, {{peer.range("target", 0, 100)}}));
  const SignalTarget signal{.word = peer.range("words", 8, kWord), .add = 3};
  std::vector<Transfer> all;
  for (int i = 0; i < kCount; ++i) all.push_back(submit_soon(plan, {.signal = &signal}));
  for (Transfer& each : all) must(finish(each));
  const auto value = [&] { return must(b().read_signal(words.range(8, kWord))); };
  EXPECT_TRUE(env().eventually([&] { return value() == 3 * kCount; })) << value();
  pass(10);
  EXPECT_EQ(value(), 3U * kCount);
}

TEST_P(Conformance, TransfersWaitForTheirWord) {
  open_pair();
  Area source = add(a(), "source", 1000), target = add(b(), "target", 1000), words = add(a(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  std::ranges::fill(target.bytes, std::byte{1});
  const Peer peer = meet();
  fill(source.bytes, 1);
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1000)}}, {{peer.range("target", 0, 1000)}}));
  const SignalWord after{.word = words.range(8, kWord), .value = 5};
  const SignalWord done{.word = words.range(16, kWord), .value = 99};
  Transfer sent = must(plan.submit({.after = &after, .done = &done}));
  auto* word = reinterpret_cast<std::uint64_t*>(words.bytes.data() + 8);
  std::atomic_ref<std::uint64_t>(*word).store(4, std::memory_order_release);
  pass(50);
  EXPECT_FALSE(sent.done());
  EXPECT_TRUE(all_are(target.bytes, std::byte{1}));
  fill(source.bytes, 2);  // Nothing was read yet: these are what arrives.
  std::atomic_ref<std::uint64_t>(*word).store(5, std::memory_order_release);
  must(finish(sent));
  EXPECT_TRUE(holds(target.bytes, 2));
  // The word follows the handle (agent/end_news.h), which a driver may still be about to do.
  EXPECT_TRUE(env().eventually([&] { return must(a().read_signal(words.range(16, kWord))) == 99U; }));
}

TEST_P(Conformance, AWordThatIsReachedHoldsNothing) {
  open_pair();
  Area source = add(a(), "source", 1000), target = add(b(), "target", 1000), words = add(a(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = a_to_b();
  fill(source.bytes, 1);
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1000)}}, {{peer.range("target", 0, 1000)}}));
  const SignalWord after{.word = words.range(0, kWord), .value = 0};
  must(run(plan, {.after = &after}));
  EXPECT_TRUE(holds(target.bytes, 1));
}

TEST_P(Conformance, AHeldTransferEndsAtItsDeadlineOrByCancel) {
  open_pair();
  Area source = add(a(), "source", 1000), target = add(b(), "target", 1000), words = add(a(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  std::ranges::fill(target.bytes, std::byte{1});
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1000)}}, {{peer.range("target", 0, 1000)}}));
  const SignalWord after{.word = words.range(0, kWord), .value = 1};
  const SignalWord done{.word = words.range(8, kWord), .value = 1};
  const Status late = run(plan, {.deadline = 30ms, .after = &after, .done = &done});
  EXPECT_TRUE(says(late, Code::kTimedOut, {"deadline"}));
  EXPECT_EQ(late.buffer(), BufferState::kUntouched);
  Transfer sent = must(plan.submit({.notify = "never", .after = &after}));
  pass(3);
  sent.cancel();
  EXPECT_EQ(finish(sent).code(), Code::kCancelled);
  EXPECT_EQ(must(a().read_signal(words.range(8, kWord))), 0U);  // Only a good end sets it.
  pass(10);
  EXPECT_TRUE(all_are(target.bytes, std::byte{1}));
  EXPECT_FALSE(b().take_notification());
}

TEST_P(Conformance, SignalsChainTransfers) {
  open_pair();
  constexpr std::size_t kSize = 50'000;
  Area ours = add(a(), "ours", 2 * kSize), theirs = add(b(), "theirs", kSize);
  Area our_words = add(a(), "our words", 64), their_words = add_memory(b(), "their words", 64);
  std::ranges::fill(our_words.bytes, std::byte{0});
  std::ranges::fill(their_words.bytes, std::byte{0});
  const Peer to_b = a_to_b(), to_a = b_to_a();
  // The answer is submitted first, and waits for the question to arrive.
  const Plan answer = must(b().plan_write(to_a, {{theirs.range(0, kSize)}}, {{to_a.range("ours", kSize, kSize)}}));
  const SignalWord arrived{.word = their_words.range(0, kWord), .value = 1};
  const SignalTarget back{.word = to_a.range("our words", 0, kWord)};
  Transfer answered = must(answer.submit({.signal = &back, .after = &arrived}));
  fill(ours.bytes.first(kSize), 1);
  const Plan question = must(a().plan_write(to_b, {{ours.range(0, kSize)}}, {{to_b.range("theirs", 0, kSize)}}));
  const SignalTarget there{.word = to_b.range("their words", 0, kWord)};
  Transfer asked = must(question.submit({.signal = &there}));
  Status reached;
  env().blocking(a(), [&] { reached = a().wait_signal(our_words.range(0, kWord), 1, kPatience); });
  must(reached);
  EXPECT_TRUE(holds(ours.bytes.subspan(kSize), 1));
  must(finish(asked));
  must(finish(answered));
}

TEST_P(Conformance, TransfersFollowOneAnother) {
  open_pair();
  constexpr std::size_t kSize = 300'000;
  constexpr int kHops = 4;
  Area ring = add(a(), "ring", kHops * kSize), target = add(b(), "target", kHops * kSize);
  const Peer peer = meet();
  fill(std::span(ring.bytes).first(kSize), 3);
  std::vector<Transfer> hops;
  // There and back: each reads what the one before has written.
  for (int hop = 0; hop < kHops; ++hop) {
    const auto at = static_cast<std::uint64_t>(hop / 2) * kSize;
    const LocalRange here = ring.range(hop % 2 == 0 ? at : at + kSize, kSize);
    const RemoteRange there = peer.range("target", at, kSize);
    const Plan plan = hop % 2 == 0 ? must(a().plan_write(peer, {&here, 1}, {&there, 1}))
                                   : must(a().plan_read(peer, {&there, 1}, {&here, 1}));
    hops.push_back(submit_soon(plan, {.after_transfer = hops.empty() ? nullptr : &hops.back()}));
  }
  must(finish(hops.back()));
  for (const Transfer& hop : hops) EXPECT_TRUE(hop.done() && hop.status().ok());
  EXPECT_TRUE(holds(std::span(ring.bytes).subspan(2 * kSize, kSize), 3));
}

TEST_P(Conformance, WrongSignalWordsAreNamed) {
  open_pair();
  Area source = add(a(), "source", 1000), target = add(b(), "target", 1000), words = add_memory(b(), "words", 64);
  Area closed_to_writes = add_memory(b(), "read only", 64, Rights::kRead), own = add(a(), "own", 64);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1000)}}, {{peer.range("target", 0, 1000)}}));
  const auto with_signal = [&](RemoteRange word) {
    const SignalTarget signal{.word = std::move(word)};
    return plan.submit({.signal = &signal}).error();
  };
  EXPECT_TRUE(says(with_signal(peer.range("words", 4, 8)), Code::kInvalid, {"submit", "aligned to 8"}));
  EXPECT_TRUE(says(with_signal(peer.range("words", 0, 4)), Code::kInvalid, {"submit", "8 bytes"}));
  EXPECT_TRUE(says(with_signal(peer.range("words", 64, 8)), Code::kInvalid, {"submit", "region"}));
  EXPECT_TRUE(says(with_signal(peer.range("words", ~std::uint64_t{7}, 8)), Code::kInvalid, {"submit"}));
  EXPECT_TRUE(says(with_signal(RemoteRange{}), Code::kInvalid, {"submit", "region"}));
  EXPECT_TRUE(says(with_signal(peer.range("read only", 0, 8)), Code::kDenied, {"submit", "read only"}));
  const SignalWord wrong{.word = own.range(4, 8), .value = 1}, none{.word = {}, .value = 1};
  EXPECT_TRUE(says(plan.submit({.after = &wrong}).error(), Code::kInvalid, {"submit", "aligned"}));
  EXPECT_TRUE(says(plan.submit({.done = &none}).error(), Code::kInvalid, {"submit", "region"}));
  EXPECT_TRUE(says(a().read_signal(own.range(60, 8)).error(), Code::kInvalid, {"read_signal", "8 bytes"}));
  EXPECT_TRUE(says(a().wait_signal(own.range(1, 8), 1, 0s), Code::kInvalid, {"8 bytes"}));
  std::ranges::fill(own.bytes, std::byte{0});
  Status late;
  env().blocking(a(), [&] { late = a().wait_signal(own.range(0, 8), 1, 20ms); });
  EXPECT_TRUE(says(late, Code::kTimedOut, {"wait_signal", "0", "1"}));
}

TEST_P(Conformance, RegionsAtOddAddressesHoldNoWords) {
  open_pair();
  Area source = add(a(), "source", 100), target = add(b(), "target", 100);
  alignas(8) std::array<std::byte, 72> ours{}, theirs{};
  Region own = must(a().add_region({.name = "odd own", .bytes = std::span(ours).subspan(1, 64)}));
  Region far = must(b().add_region({.name = "odd far", .bytes = std::span(theirs).subspan(1, 64)}));
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 100)}}, {{peer.range("target", 0, 100)}}));
  const SignalWord word{.word = own.range(8, kWord), .value = 1};
  EXPECT_TRUE(says(plan.submit({.after = &word}).error(), Code::kInvalid, {"submit", "odd own", "multiple of 8"}));
  EXPECT_TRUE(says(plan.submit({.done = &word}).error(), Code::kInvalid, {"submit", "odd own", "multiple of 8"}));
  EXPECT_TRUE(says(a().read_signal(own.range(8, kWord)).error(), Code::kInvalid, {"read_signal", "aligned to 8"}));
  // Where the peer's region begins is not known here: it refuses, and counts that.
  const SignalTarget signal{.word = peer.range("odd far", 8, kWord)};
  const std::uint64_t before = b().counters().total.errors;
  must(run(plan, {.notify = "came", .signal = &signal}));
  EXPECT_EQ(next_notification(b()).text, "came");
  EXPECT_TRUE(all_are(theirs, std::byte{0}));
  EXPECT_EQ(b().counters().total.errors, before + 1);
  must(own.close(0s));
  Status closed;
  env().blocking(b(), [&] { closed = far.close(kPatience); });
  must(closed);
}

TEST_P(Conformance, AHeldTransferCostsNoProcessor) {
  HAWSER_NEEDS_REAL_TIME();
  open_pair();
  Area source = add(a(), "source", 100), target = add(b(), "target", 100), words = add_memory(a(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 100)}}, {{peer.range("target", 0, 100)}}));
  const SignalWord after{.word = words.range(0, kWord), .value = 1};
  Transfer held = must(plan.submit({.after = &after}));
  const auto spent = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto from = spent();
  EXPECT_EQ(held.wait(500ms).code(), Code::kTimedOut);
  EXPECT_LT(spent() - from, 150ms) << "of the processor, in 500 ms";
  auto* word = reinterpret_cast<std::uint64_t*>(words.bytes.data());
  std::atomic_ref<std::uint64_t>(*word).store(1, std::memory_order_release);
  must(finish(held));
}

TEST_P(Conformance, HeldTransfersAreBounded) {
  constexpr int kHeldMax = 4096;
  open_pair();
  Area source = add(a(), "source", 8), target = add(b(), "target", 8), words = add_memory(a(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 8)}}, {{peer.range("target", 0, 8)}}));
  const SignalWord after{.word = words.range(0, kWord), .value = 1};
  std::vector<Transfer> held;
  for (int i = 0; i < kHeldMax; ++i) held.push_back(must(plan.submit({.deadline = 60s, .after = &after})));
  // Where a driver runs the lane, some may be on their way to it still, and it is the transfer that tells.
  ASSERT_TRUE(env().eventually([&] { return a().counters().transfers_in_flight_gauge == kHeldMax; }));
  Result<Transfer> more = plan.submit({.after = &after});
  const Status refused = more ? finish(*more) : more.error();
  EXPECT_TRUE(says(refused, Code::kBusy, {"submit", "4096", "after"}));
  must(run(plan));  // Others go on.
  held.back().cancel();
  EXPECT_EQ(finish(held.back()).code(), Code::kCancelled);
  held.back() = must(plan.submit({.deadline = 60s, .after = &after}));
  auto* word = reinterpret_cast<std::uint64_t*>(words.bytes.data());
  std::atomic_ref<std::uint64_t>(*word).store(1, std::memory_order_release);
  for (Transfer& each : held) must(finish(each));
}

}  // namespace
}  // namespace hawser::conformance
