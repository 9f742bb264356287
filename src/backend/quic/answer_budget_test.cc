#include "backend/quic/answer_budget.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hawser::backend::quic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSalt = 12345;
const Instant kStart = Instant::from_ns(1'000'000'000);

std::uint32_t take_all(AnswerBudget& budget, std::uint64_t source, bool is_here, Instant now, std::uint32_t tries) {
  std::uint32_t taken = 0;
  for (std::uint32_t i = 0; i < tries; ++i) taken += budget.take(source, is_here, now) ? 1u : 0u;
  return taken;
}

TEST(QuicAnswerBudget, OneSourceHasItsBurstAndNoAnswerMore) {
  AnswerBudget budget(kSalt);
  EXPECT_EQ(take_all(budget, 7, false, kStart, AnswerBudget::kSourceBurst), AnswerBudget::kSourceBurst);
  EXPECT_FALSE(budget.take(7, false, kStart));
  EXPECT_TRUE(budget.take(8, false, kStart)) << "another source has its own";
  EXPECT_EQ(budget.held_back(), 1u);
}

TEST(QuicAnswerBudget, ASourceGetsMoreAsTimeGoesByAndNeverMoreThanItsBurst) {
  AnswerBudget budget(kSalt);
  take_all(budget, 7, false, kStart, 1000);
  EXPECT_FALSE(budget.take(7, false, kStart + milliseconds(19)));
  EXPECT_TRUE(budget.take(7, false, kStart + milliseconds(20)));
  EXPECT_FALSE(budget.take(7, false, kStart + milliseconds(20)));
  EXPECT_EQ(take_all(budget, 7, false, kStart + seconds(100), 1000), AnswerBudget::kSourceBurst);
}

// A flood from a million invented addresses.
TEST(QuicAnswerBudget, OverAllSourcesThereIsOneBound) {
  AnswerBudget budget(kSalt);
  std::uint32_t taken = 0;
  constexpr std::uint32_t kFlood = 1'000'000;
  for (std::uint64_t source = 0; source < kFlood; ++source) {
    taken += budget.take(source, false, kStart + std::chrono::microseconds(source)) ? 1u : 0u;
  }
  EXPECT_GE(taken, AnswerBudget::kBurst + AnswerBudget::kPerSecond - 2);
  EXPECT_LE(taken, AnswerBudget::kBurst + AnswerBudget::kPerSecond);
  EXPECT_EQ(budget.held_back(), kFlood - taken);
}

TEST(QuicAnswerBudget, OnThisHostOnlyTheBoundOverAllCounts) {
  AnswerBudget budget(kSalt);
  EXPECT_EQ(take_all(budget, 1, true, kStart, AnswerBudget::kBurst), AnswerBudget::kBurst);
  EXPECT_FALSE(budget.take(1, true, kStart));
  EXPECT_FALSE(budget.take(2, false, kStart)) << "nobody else has any left either";
}

// One that used up its bucket is not forgotten for others that come once.
TEST(QuicAnswerBudget, AnEmptyBucketIsTheLastToGiveWay) {
  AnswerBudget budget(kSalt);
  take_all(budget, 7, false, kStart, 1000);
  Instant now = kStart;
  for (std::uint64_t source = 100; source < 300; ++source) {
    budget.take(source, false, now);
    EXPECT_FALSE(budget.take(7, false, now)) << source;
  }
}

TEST(QuicAnswerBudget, AClockThatStandsOrGoesBackGivesNothing) {
  AnswerBudget budget(kSalt);
  take_all(budget, 7, false, kStart, 1000);
  EXPECT_FALSE(budget.take(7, false, kStart - seconds(5)));
  EXPECT_FALSE(budget.take(7, false, kStart));
}

}  // namespace
}  // namespace hawser::backend::quic
