// Submitting: often, many at once, by priority, up to the bound.

#include <algorithm>
#include <cstring>

#include "../sanitized.h"
#include "agent_suite.h"

namespace hawser::conformance {
namespace {

/// A tenth of them with a sanitizer.
TEST_P(Conformance, OnePlanIsSubmittedTenThousandTimes) {
  constexpr std::uint64_t kTimes = kIsSanitized ? 1'000 : 10'000;
  open_pair();
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 8, 64)}}));
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    std::memcpy(source.bytes.data(), &i, sizeof(i));
    const Status status = run(plan);
    ASSERT_TRUE(status.ok()) << i << ": " << status.to_string();
    std::uint64_t seen = 0;
    std::memcpy(&seen, target.bytes.data() + 8, sizeof(seen));
    ASSERT_EQ(seen, i);
  }
  const AgentCounters counters = a().counters();
  EXPECT_EQ(counters.total.writes, kTimes);
  EXPECT_EQ(counters.total.bytes_written, 64 * kTimes);
  EXPECT_EQ(counters.transfers_in_flight_gauge, 0U);
}

TEST_P(Conformance, SeveralPlansAreInFlight) {
  open_pair();
  constexpr std::size_t kPlans = 64, kSize = 100'000;
  Area source = add(a(), "source", kPlans * kSize), target = add(b(), "target", kPlans * kSize);
  const Peer peer = a_to_b();
  fill(source.bytes, 1);
  std::vector<Plan> plans;
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < kPlans; ++i) {
    const std::size_t at = (kPlans - 1 - i) * kSize;
    plans.push_back(must(a().plan_write(peer, {{source.range(at, kSize)}}, {{peer.range("target", at, kSize)}})));
    all.push_back(must(plans.back().submit()));
  }
  for (Transfer& each : all) {
    must(finish(each));
    EXPECT_EQ(each.bytes(), kSize);
  }
  EXPECT_TRUE(holds(target.bytes, 1));
}

TEST_P(Conformance, ASmallTransferPassesLargeOnesThatAreBlocked) {
  open_pair();
  constexpr std::size_t kTimes = 150, kSize = 512 * 1024;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = meet();
  const Plan large = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  const Plan small = must(a().plan_write(peer, {{source.range(0, 8)}}, {{peer.range("target", 0, 8)}}));
  // Other paths take all of them and work in order. Where this thread had no processor for long, all is over when it
  // looks, so it looks some times.
  const bool takes_it_beside = backend() == "tcp" || (backend() == "shm" && GetParam().allocated);
  bool has_passed = !GetParam().polled || !takes_it_beside;
  for (int round = 0; round == 0 || (round < 5 && !has_passed); ++round) {
    std::vector<Transfer> all;
    for (std::size_t i = 0; i < kTimes; ++i) all.push_back(must(large.submit()));
    Transfer quick = must(small.submit());
    must(finish(quick));
    has_passed = has_passed || !all.back().done();
    for (Transfer& each : all) must(finish(each));
  }
  EXPECT_TRUE(has_passed) << "the small one waited for all the large ones";
}

TEST_P(Conformance, OnePlanIsInFlightManyTimes) {
  open_pair();
  constexpr std::size_t kTimes = 200, kSize = 20'000;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = a_to_b();
  fill(source.bytes, 2);
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < kTimes; ++i) all.push_back(must(plan.submit()));
  for (Transfer& each : all) must(finish(each));
  EXPECT_TRUE(holds(target.bytes, 2));
  EXPECT_EQ(a().counters().total.bytes_written, kTimes * kSize);
}

TEST_P(Conformance, PlansOutliveTheirHandles) {
  open_pair();
  constexpr std::size_t kSize = 2 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = a_to_b();
  fill(source.bytes, 3);
  Transfer sent;
  {
    const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
    sent = must(plan.submit());
  }
  must(finish(sent));
  EXPECT_TRUE(holds(target.bytes, 3));
}

TEST_P(Conformance, TheCriticalDoesNotWaitForBulk) {
  open_pair();
  constexpr std::size_t kBulk = 4 << 20, kCount = 6;
  Area source = add(a(), "source", kBulk), target = add(b(), "target", kBulk + 4096);
  const Peer peer = meet();
  fill(source.bytes, 4);
  const Plan bulk = must(a().plan_write(peer, {{source.range(0, kBulk)}}, {{peer.range("target", 0, kBulk)}}));
  const Plan small = must(a().plan_write(peer, {{source.range(7, 64)}}, {{peer.range("target", kBulk, 64)}}));
  // Where other programs have the processors, all may have ended when this thread looks; but not again and again.
  constexpr int kRounds = 10;
  std::ptrdiff_t ended = kCount;
  for (int round = 0; round < kRounds && ended == static_cast<std::ptrdiff_t>(kCount); ++round) {
    std::vector<Transfer> all;
    for (std::size_t i = 0; i < kCount; ++i) all.push_back(must(bulk.submit({.priority = Priority::kBulk})));
    Transfer critical = must(small.submit({.priority = Priority::kCritical}));
    must(finish(critical));
    ended = std::ranges::count_if(all, [](const Transfer& each) { return each.done(); });
    EXPECT_TRUE(holds(target.bytes.subspan(kBulk, 64), 4, 7));
    for (Transfer& each : all) must(finish(each));
    if (!GetParam().polled) break;
  }
  if (GetParam().polled) {
    EXPECT_LT(ended, static_cast<std::ptrdiff_t>(kCount));
  }
  EXPECT_TRUE(holds(target.bytes.first(kBulk), 4));
}

TEST_P(Conformance, EveryPriorityArrives) {
  open_pair();
  Area source = add(a(), "source", 9 * 70'000), target = add(b(), "target", 9 * 70'000);
  const Peer peer = a_to_b();
  fill(source.bytes, 5);
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < 9; ++i) {
    const Plan plan =
        must(a().plan_write(peer, {{source.range(i * 70'000, 70'000)}}, {{peer.range("target", i * 70'000, 70'000)}}));
    all.push_back(must(plan.submit({.priority = static_cast<Priority>(i % 3)})));
  }
  for (Transfer& each : all) must(finish(each));
  EXPECT_TRUE(holds(target.bytes, 5));
}

TEST_P(Conformance, TransfersAreBounded) {
  AgentOptions few = options("a"), other = options("b");
  few.limits.transfers = other.limits.transfers = 4;
  open_pair(few, other);
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 0, 64)}}));
  // What is over when submit returns needs no place; what reports to a queue is never that.
  CompletionQueue queue = must(a().make_queue(16));
  const SubmitOptions reported = {.queue = &queue};
  std::vector<Transfer> held;
  for (int i = 0; i < 4; ++i) held.push_back(must(plan.submit(reported)));
  for (Transfer& each : held) must(finish(each));
  // Handles hold their places also once they are final.
  EXPECT_TRUE(says(plan.submit(reported).error(), Code::kBusy, {"submit", "limits.transfers = 4", "drop"}));
  held.pop_back();
  held.push_back(must(plan.submit(reported)));
  must(finish(held.back()));
}

TEST_P(Conformance, AHandleTellsOfWhatIsOverAsLongAsItLives) {
  open_pair();
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 0, 64)}}));
  fill(source.bytes, 3);
  const std::uint64_t before = a().counters().total.writes;
  Transfer first = must(plan.submit());
  must(finish(first));
  EXPECT_TRUE(holds(std::span(target.bytes).first(64), 3));
  EXPECT_EQ(a().counters().total.writes, before + 1);
  EXPECT_EQ(a().counters().transfers_in_flight_gauge, 0u);
  Transfer second = std::move(first);
  EXPECT_FALSE(first.done());  // NOLINT: a handle that was moved from is empty.
  EXPECT_EQ(first.wait().code(), Code::kInvalid);
  first = std::move(second);
  first.cancel();
  EXPECT_TRUE(first.done());
  must(first.wait(Duration::zero()));
  must(first.status());
  EXPECT_EQ(first.bytes(), 64u);
}

TEST_P(Conformance, DroppingATransferCancelsIt) {
  open_pair();
  constexpr std::size_t kSize = 8 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  for (int i = 0; i < 8; ++i) {
    {
      const Transfer sent = must(plan.submit());
      pass(i);
    }
    EXPECT_TRUE(env().eventually([&] { return a().counters().transfers_in_flight_gauge == 0; }));
  }
  must(run(plan));
}

TEST_P(Conformance, WrongSubmitOptionsAreNamed) {
  open_pair();
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 0, 64)}}));
  const std::string large(kMessageMax + 1, 'x');
  EXPECT_TRUE(says(plan.submit({.notify = large}).error(), Code::kInvalid, {"submit", "65537", "65536"}));
  EXPECT_TRUE(says(plan.submit({.deadline = -1s}).error(), Code::kInvalid, {"submit", "deadline", "-1000000000 ns"}));
  EXPECT_TRUE(says(Plan().submit().error(), Code::kInvalid, {"submit", "empty"}));
  CompletionQueue none;
  EXPECT_TRUE(says(plan.submit({.queue = &none}).error(), Code::kInvalid, {"submit", "queue"}));
  EXPECT_EQ(a().counters().transfers_in_flight_gauge, 0U);
  Transfer empty;
  EXPECT_TRUE(says(empty.wait(0s), Code::kInvalid, {"Transfer::wait", "empty"}));
  empty.cancel();
  EXPECT_FALSE(empty.done());
  EXPECT_EQ(empty.bytes(), 0U);
}

}  // namespace
}  // namespace hawser::conformance
