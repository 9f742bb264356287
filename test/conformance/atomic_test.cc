// Atomic operations on words of a peer: exact sums, locks, and ends that say what is known of the word.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include <hawser/atomic.h>

#include "agent_suite.h"

namespace hawser::conformance {
namespace {

constexpr std::size_t kAtomicWord = 8;

std::uint64_t value_at(const Area& words, std::size_t offset) {
  auto* word = reinterpret_cast<std::uint64_t*>(words.bytes.data() + offset);
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

TEST_P(Conformance, AtomicsFindAndChangeWords) {
  open_pair();
  Area words = add(b(), "words", 4096);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = a_to_b();
  const auto end_of = [&](Result<AtomicOp> started) {
    AtomicOp op = must(std::move(started));
    EXPECT_TRUE(env().eventually([&] { return op.done(); }));
    must(op.status());
    return op.found();
  };
  const RemoteRange word = peer.range("words", 64, kAtomicWord);
  EXPECT_EQ(end_of(fetch_add(a(), word, 5)), 0U);
  EXPECT_EQ(end_of(fetch_add(a(), word, ~std::uint64_t{0})), 5U);
  EXPECT_EQ(end_of(compare_swap(a(), word, 4, 100)), 4U);
  EXPECT_EQ(end_of(compare_swap(a(), word, 4, 200)), 100U);
  EXPECT_EQ(value_at(words, 64), 100U);
  EXPECT_TRUE(all_are(words.bytes.first(64), std::byte{0}));
  EXPECT_TRUE(all_are(words.bytes.subspan(72), std::byte{0}));
}

TEST_P(Conformance, FetchAddsBesideTheOwnersOwnSumExactly) {
  open_pair();
  constexpr std::uint64_t kCount = 1000, kWindow = 300;
  Area words = add(b(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  const RemoteRange far = a_to_b().range("words", 0, kAtomicWord);
  CompletionQueue queue = must(a().make_queue(kWindow));
  std::vector<AtomicOp> ops;
  std::vector<bool> seen(2 * kCount, false);
  const auto collect = [&] {
    for (AtomicOp& op : ops) {
      ASSERT_TRUE(env().eventually([&] { return op.done(); }));
      must(op.status());
      ASSERT_LT(op.found(), seen.size());
      EXPECT_FALSE(seen[op.found()]) << op.found();
      seen[op.found()] = true;
    }
    ops.clear();
  };
  std::uint64_t reported = 0;
  for (std::uint64_t i = 0; i < kCount; i += kWindow) {
    const std::uint64_t part = std::min(kWindow, kCount - i);
    for (std::uint64_t k = 0; k < part; ++k) {
      ops.push_back(must(fetch_add(a(), far, 1, {.queue = &queue, .cookie = i + k})));
      if (!self()) {
        auto* word = reinterpret_cast<std::uint64_t*>(words.bytes.data());
        const std::uint64_t found = std::atomic_ref<std::uint64_t>(*word).fetch_add(1);  // The owner's own, beside.
        ASSERT_LT(found, seen.size());
        EXPECT_FALSE(seen[found]);
        seen[found] = true;
      }
    }
    collect();
    std::vector<Completion> done(kWindow + 64);  // Hints may be among them.
    done.resize(queue.poll(done));
    reported += static_cast<std::uint64_t>(std::ranges::count(done, CompletionKind::kTransfer, &Completion::kind));
  }
  EXPECT_EQ(reported, kCount);
  EXPECT_EQ(value_at(words, 0), self() ? kCount : 2 * kCount);
}

TEST_P(Conformance, WrongAtomicWordsAreNamed) {
  open_pair();
  Area words = add(b(), "words", 64), closed_to_writes = add(b(), "read only", 64, Rights::kRead);
  const Peer peer = a_to_b();
  const auto error_of = [&](const RemoteRange& word) { return fetch_add(a(), word, 1).error(); };
  EXPECT_TRUE(says(error_of(peer.range("words", 4, 8)), Code::kInvalid, {"fetch_add", "offset 4", "aligned to 8"}));
  EXPECT_TRUE(says(error_of(peer.range("words", 0, 4)), Code::kInvalid, {"fetch_add", "size 4", "words"}));
  EXPECT_TRUE(says(error_of(peer.range("words", 1 << 20, 8)), Code::kInvalid, {"fetch_add", "words"}));
  EXPECT_TRUE(says(error_of(RemoteRange{}), Code::kInvalid, {"fetch_add", "no region"}));
  EXPECT_TRUE(says(error_of(peer.range("read only", 0, 8)), Code::kDenied, {"fetch_add", "read only"}));
  EXPECT_TRUE(says(compare_swap(a(), peer.range("words", 4, 8), 0, 1).error(), Code::kInvalid, {"compare_swap"}));
  EXPECT_TRUE(says(fetch_add(a(), peer.range("words", 0, 8), 1, {.deadline = -1ns}).error(), Code::kInvalid,
                   {"fetch_add", "negative"}));
}

TEST_P(Conformance, AtomicsOnAClosedRegionAreRefused) {
  open_pair();
  Area words = add(b(), "words", 64);
  const Peer peer = a_to_b();
  const RemoteRange word = peer.range("words", 0, kAtomicWord);
  Status closed;
  env().blocking(b(), [&] { closed = words.region.close(kPatience); });
  must(closed);
  AtomicOp op = must(fetch_add(a(), word, 1));
  ASSERT_TRUE(env().eventually([&] { return op.done(); }));
  EXPECT_FALSE(op.status().ok());
  EXPECT_EQ(op.status().buffer(), BufferState::kUntouched);
  EXPECT_NE(op.status().code(), Code::kTimedOut) << op.status().to_string();
}

TEST_P(Conformance, AtomicsToALostPeerEnd) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area words = add(b(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = meet();
  const RemoteRange word = peer.range("words", 0, kAtomicWord);
  AtomicOp first = must(fetch_add(a(), word, 1));
  ASSERT_TRUE(env().eventually([&] { return first.done(); }));
  must(first.status());
  env().freeze(&b());
  AtomicOp late = must(fetch_add(a(), word, 1, {.deadline = 30ms}));
  AtomicOp stopped = must(fetch_add(a(), word, 1));
  ASSERT_TRUE(env().eventually([&] { return late.done(); }));
  EXPECT_TRUE(says(late.status(), Code::kTimedOut, {"deadline"}));
  EXPECT_EQ(late.status().buffer(), BufferState::kUnknown) << late.status().to_string();
  stopped.cancel();
  EXPECT_EQ(stopped.status().code(), Code::kCancelled);
  AtomicOp lost = must(fetch_add(a(), word, 1));
  env().thaw(&b());
  { const Area gone = std::move(words); }  // The region first, then its memory: assignment goes the other way.
  drop(b_);
  ASSERT_TRUE(env().eventually([&] { return lost.done(); }));
  if (!lost.status().ok()) {
    EXPECT_NE(lost.status().code(), Code::kTimedOut) << lost.status().to_string();
    EXPECT_NE(lost.status().buffer(), BufferState::kPartlyWritten);
  }
  ASSERT_TRUE(env().eventually([&] { return peer.state() == PeerState::kDown; }));
  EXPECT_FALSE(fetch_add(a(), word, 1));
}

/// The peer reads nothing, so what was asked takes all credit, one waits for more, and those behind it are given up.
TEST_P(Conformance, AtomicsThatAreGivenUpLeaveNothingBehind) {
  HAWSER_NEEDS_TWO_AGENTS();
  AgentOptions for_a = options("a"), for_b = options("b");
  for_a.heartbeat = for_b.heartbeat = kPatience;  // The other one stands still for as long as all of them take.
  open_pair(std::move(for_a), std::move(for_b));
  Area words = add(b(), "words", 64);
  const RemoteRange word = meet().range("words", 0, kAtomicWord);
  env().freeze(&b());
  std::vector<AtomicOp> asked;
  for (int i = 0; i < 300; ++i) asked.push_back(must(fetch_add(a(), word, 1)));
  for (int i = 0; i < 20; ++i) env().pass();
  const std::size_t before = ::mallinfo2().uordblks;
  constexpr int kTimes = 50'000;
  for (int i = 0; i < kTimes; ++i) must(fetch_add(a(), word, 1)).cancel();
  const std::size_t after = ::mallinfo2().uordblks;
  EXPECT_LT(after > before ? after - before : 0, kTimes * sizeof(std::uint64_t) / 2);
  env().thaw(&b());
}

}  // namespace
}  // namespace hawser::conformance
