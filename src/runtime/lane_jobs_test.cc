#include "runtime/lane_jobs.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::runtime {
namespace {

constexpr Instant kWhen = Instant::from_ns(7);

struct Looker final : Lookout {
  std::size_t look(Instant) override {
    ++looks;
    if (leaves != nullptr) leaves->unwatch(*this);
    return news;
  }
  bool ask() override { return sleeps; }

  int looks = 0;
  std::size_t news = 0;
  bool sleeps = true;
  LaneJobs* leaves = nullptr;
};

TEST(LaneJobs, AJobMayAddOthersAndNoneRunsWithinAnother) {
  LaneJobs jobs;
  std::vector<int> ran;
  EXPECT_FALSE(jobs.run(kWhen)) << "there is nothing";
  jobs.run_soon([&](Instant now) {
    EXPECT_EQ(now, kWhen);
    jobs.run_soon([&](Instant) { ran.push_back(2); });
    EXPECT_FALSE(jobs.run(now)) << "it goes on above";
    ran.push_back(1);
  });
  EXPECT_TRUE(jobs.run(kWhen));
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
  EXPECT_FALSE(jobs.run(kWhen));
}

TEST(LaneJobs, ALaterJobRunsInTheNextTurnOnly) {
  LaneJobs jobs;
  int ran = 0;
  jobs.run_later([&](Instant) {
    ++ran;
    jobs.run_later([&](Instant) { ++ran; });
  });
  EXPECT_FALSE(jobs.run(kWhen));
  EXPECT_TRUE(jobs.wants_turn());
  EXPECT_EQ(jobs.turn(kWhen), 1U);
  EXPECT_EQ(ran, 1) << "what it adds is for the turn after it";
  EXPECT_EQ(jobs.turn(kWhen), 1U);
  EXPECT_FALSE(jobs.wants_turn());
  EXPECT_EQ(ran, 2);
}

TEST(LaneJobs, ALookoutLooksInEachTurnUntilItHasAsked) {
  LaneJobs jobs;
  Looker awake, tired;
  awake.news = 3;
  awake.sleeps = false;
  jobs.watch(awake);
  jobs.watch(tired);
  EXPECT_EQ(jobs.turn(kWhen), 3U);
  EXPECT_FALSE(jobs.prepare_sleep()) << "one has news";
  jobs.turn(kWhen);
  EXPECT_EQ(awake.looks, 2);
  EXPECT_EQ(tired.looks, 1);
  awake.sleeps = true;
  EXPECT_TRUE(jobs.prepare_sleep());
  EXPECT_FALSE(jobs.wants_turn());
}

TEST(LaneJobs, ALookoutMayLeaveWhileItLooks) {
  LaneJobs jobs;
  Looker first, second;
  first.leaves = &jobs;
  jobs.watch(first);
  jobs.watch(second);
  jobs.turn(kWhen);
  EXPECT_EQ(second.looks, 1) << "none is passed over";
  jobs.turn(kWhen);
  EXPECT_EQ(first.looks, 1);
  EXPECT_EQ(second.looks, 2);
}

}  // namespace
}  // namespace hawser::runtime
