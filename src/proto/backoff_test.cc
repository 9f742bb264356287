#include "proto/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hawser::proto {
namespace {

Instant at(std::int64_t ms) { return Instant::from_ns(ms * 1000000); }
constexpr Duration ms(std::int64_t count) { return std::chrono::milliseconds(count); }

TEST(Backoff, PausesDoubleUpToTheLongest) {
  base::Rng rng(1);
  Backoff backoff({.first = ms(10), .longest = ms(50), .factor = 2, .jitter = 0}, at(1000));
  std::vector<std::int64_t> pauses;
  Instant now = at(0);
  while (const std::optional<Instant> next = backoff.next(now, rng)) {
    pauses.push_back((*next - now).count() / 1000000);
    now = *next;
    if (pauses.size() == 6) break;
  }
  EXPECT_EQ(pauses, (std::vector<std::int64_t>{10, 20, 40, 50, 50, 50}));
  EXPECT_EQ(backoff.attempts(), 6u);
}

TEST(Backoff, NoAttemptAtOrAfterTheDeadline) {
  base::Rng rng(1);
  Backoff backoff({.first = ms(10), .longest = ms(10), .factor = 1, .jitter = 0}, at(100));
  EXPECT_EQ(backoff.next(at(89), rng), at(99));
  EXPECT_FALSE(backoff.next(at(90), rng));
  EXPECT_FALSE(backoff.next(at(500), rng));
  EXPECT_EQ(backoff.attempts(), 1u);
  backoff.reset(at(600));
  EXPECT_EQ(backoff.attempts(), 0u);
  EXPECT_EQ(backoff.next(at(500), rng), at(510));
  EXPECT_EQ(backoff.deadline(), at(600));
}

TEST(Backoff, JitterStaysInItsRangeAndSpreads) {
  base::Rng rng(2);
  Duration least = Duration::max(), most = Duration::zero();
  for (int i = 0; i < 1000; ++i) {
    Backoff backoff({.first = ms(100), .longest = ms(1000), .factor = 2, .jitter = 0.5}, Instant::max());
    const Duration pause = *backoff.next(at(0), rng) - at(0);
    least = std::min(least, pause);
    most = std::max(most, pause);
  }
  EXPECT_GE(least, ms(50));
  EXPECT_LE(most, ms(100));
  EXPECT_LT(least, ms(53));
  EXPECT_GT(most, ms(97));
}

TEST(Backoff, HugeValuesDoNotOverflow) {
  base::Rng rng(3);
  Backoff backoff({.first = Duration::max() / 2, .longest = Duration::max(), .factor = 3, .jitter = 9}, Instant::max());
  for (int i = 0; i < 5; ++i) {
    const std::optional<Instant> next = backoff.next(at(1), rng);
    EXPECT_TRUE(!next || *next >= at(1));
  }
}

}  // namespace
}  // namespace hawser::proto
