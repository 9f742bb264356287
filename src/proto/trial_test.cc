#include "proto/trial.h"

#include <gtest/gtest.h>

#include <vector>

#include "proto/backoff.h"

namespace hawser::proto {
namespace {

Instant at(std::int64_t ms) { return Instant::from_ns(ms * 1000000); }

TEST(Trial, EveryWayToEnd) {
  struct Row {
    std::int64_t lived_ms;
    std::uint64_t carried;
    bool was_idle, excused;
    bool worked;
  };
  for (const Row& row : std::vector<Row>{{0, 0, false, false, false},
                                         {0, 0, false, true, true},
                                         {0, 0, true, false, false},
                                         {0, 0, true, true, true},
                                         {0, 1, false, false, true},
                                         {0, 1, false, true, true},
                                         {0, 1, true, false, true},
                                         {0, 1, true, true, true},
                                         {999, 0, true, false, false},
                                         {1000, 0, false, false, false},
                                         {1000, 0, false, true, true},
                                         {1000, 0, true, false, true},
                                         {1000, 0, true, true, true},
                                         {1000, 1, false, false, true},
                                         {1000, 1, false, true, true},
                                         {1000, 1, true, false, true},
                                         {1000, 1, true, true, true}}) {
    Trial trial;
    trial.begin(at(5000), 7);
    const TrialEnd end{
        .at = at(5000 + row.lived_ms), .carried = 7 + row.carried, .was_idle = row.was_idle, .excused = row.excused};
    EXPECT_EQ(trial.end(end), row.worked)
        << row.lived_ms << " " << row.carried << " " << row.was_idle << " " << row.excused;
    EXPECT_EQ(trial.failed(), row.worked ? 0u : 1u);
  }
}

TEST(Trial, FailuresInARowAreCountedAndPausesGrowUntilOneWorks) {
  base::Rng rng(1);
  Backoff backoff({.first = std::chrono::milliseconds(10), .longest = std::chrono::seconds(1), .jitter = 0},
                  Instant::max());
  Trial trial;
  std::vector<std::int64_t> pauses;
  Instant now = at(0);
  for (int i = 0; i < 6; ++i) {
    trial.begin(now, 0);
    const bool works = i == 3;
    if (trial.end({.at = now, .carried = works ? 1u : 0u})) backoff.reset(Instant::max());
    const Instant next = *backoff.next(now, rng);
    pauses.push_back((next - now).count() / 1000000);
    now = next;
  }
  EXPECT_EQ(pauses, (std::vector<std::int64_t>{10, 20, 40, 10, 20, 40}));
  EXPECT_EQ(trial.failed(), 2u);
}

}  // namespace
}  // namespace hawser::proto
