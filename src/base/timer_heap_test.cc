#include "base/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/rng.h"

namespace hawser::base {
namespace {

struct TimedJob {
  int number = 0;
  TimerHook hook;
};
using Heap = TimerHeap<TimedJob, &TimedJob::hook>;

Instant at(std::int64_t ns) { return Instant::from_ns(ns); }

TEST(TimerHeap, GivesOutWhatIsDueEarliestFirst) {
  std::array<TimedJob, 5> jobs;
  Heap heap;
  EXPECT_EQ(heap.next(), Instant::max());
  EXPECT_EQ(heap.take(Instant::max()), nullptr);
  for (int i = 0; i < 5; ++i) heap.set(jobs[static_cast<std::size_t>(i)], at(50 - 10 * i));
  EXPECT_EQ(heap.next(), at(10));
  EXPECT_EQ(heap.take(at(9)), nullptr);
  EXPECT_EQ(heap.take(at(10)), &jobs[4]);
  EXPECT_FALSE(jobs[4].hook.is_set());
  EXPECT_EQ(jobs[4].hook.at(), Instant::max());
  EXPECT_EQ(heap.take(at(100)), &jobs[3]);
  EXPECT_EQ(heap.size(), 3u);
}

TEST(TimerHeap, MovesAndClearsFromAnywhere) {
  std::array<TimedJob, 3> jobs;
  Heap heap;
  for (TimedJob& job : jobs) heap.set(job, at(10));
  heap.set(jobs[1], at(5));
  EXPECT_EQ(heap.next(), at(5));
  heap.set(jobs[1], at(20));
  heap.clear(jobs[0]);
  heap.clear(jobs[0]);
  heap.set(jobs[2], Instant::max());
  EXPECT_EQ(heap.take(at(100)), &jobs[1]);
  EXPECT_TRUE(heap.empty());
}

TEST(TimerHeap, OneThatDiesLeavesItsElementsUnset) {
  TimedJob job;
  {
    Heap heap;
    heap.set(job, at(1));
  }
  EXPECT_FALSE(job.hook.is_set());
}

TEST(TimerHeap, AgreesWithALookAtAll) {
  Rng rng(7);
  std::vector<TimedJob> jobs(97);
  Heap heap;
  for (int step = 0; step < 20'000; ++step) {
    TimedJob& job = jobs[rng.below(jobs.size())];
    const std::uint64_t dice = rng.below(10);
    if (dice < 6) {
      heap.set(job, at(static_cast<std::int64_t>(rng.below(1000))));
    } else if (dice < 8) {
      heap.clear(job);
    } else {
      const Instant now = at(static_cast<std::int64_t>(rng.below(1000)));
      const Instant least =
          std::ranges::min_element(jobs, {}, [](const TimedJob& each) { return each.hook.at(); })->hook.at();
      TimedJob* const due = heap.take(now);
      ASSERT_EQ(due != nullptr, least <= now && least != Instant::max()) << step;
    }
    const auto set = std::ranges::count_if(jobs, [](const TimedJob& each) { return each.hook.is_set(); });
    ASSERT_EQ(heap.size(), static_cast<std::size_t>(set));
    std::size_t seen = 0;
    heap.for_each([&](const TimedJob& each) { seen += each.hook.is_set() ? 1 : 0; });
    ASSERT_EQ(seen, heap.size());
    ASSERT_EQ(heap.next(),
              std::ranges::min_element(jobs, {}, [](const TimedJob& each) { return each.hook.at(); })->hook.at());
  }
}

}  // namespace
}  // namespace hawser::base
