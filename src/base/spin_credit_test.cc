#include "base/spin_credit.h"

#include <gtest/gtest.h>

#include "base/test_clock.h"

namespace hawser::base {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class Account : public testing::Test {
 protected:
  bool may_spin() { return credit_.may_spin(clock_.now_); }
  void find(int waits) {
    for (int i = 0; i < waits; ++i) credit_.found();
  }
  void lose(Duration took) { credit_.lost(took, clock_.now_); }
  /// How long nobody looks from now on.
  Duration rest() {
    Duration rested = Duration::zero();
    for (; !may_spin(); rested += milliseconds(1)) clock_.now_ = clock_.now_ + milliseconds(1);
    return rested;
  }

  TestClock clock_;
  SpinCredit credit_;
};

TEST_F(Account, LooksUntilItLosesASlice) {
  EXPECT_TRUE(may_spin());
  lose(milliseconds(3));
  EXPECT_FALSE(may_spin());
}

TEST_F(Account, InterruptsAreNoLoss) {
  lose(SpinCredit::kLoss - microseconds(1));
  EXPECT_TRUE(may_spin());
}

TEST_F(Account, ASliceIsWorthTheWaitsThatEndedBetweenTwoOfThem) {
  for (int slice = 0; slice < 100; ++slice) {
    find(400);
    lose(milliseconds(4));
    ASSERT_TRUE(may_spin()) << slice;
  }
  find(399);
  lose(milliseconds(4));
  EXPECT_FALSE(may_spin()) << "sleeping would have cost less";
}

TEST_F(Account, WhatWasEarnedLongAgoPaysForTwoSlices) {
  find(1'000'000);
  lose(milliseconds(4));
  lose(milliseconds(4));
  EXPECT_TRUE(may_spin());
  lose(milliseconds(2));
  EXPECT_FALSE(may_spin());
}

TEST_F(Account, ATryThatFailsDoublesTheRestUpToABound) {
  Duration expected = SpinCredit::kRestLeast;
  for (int tries = 0; tries < 20; ++tries) {
    lose(milliseconds(2));
    ASSERT_EQ(rest(), expected);
    expected = std::min(2 * expected, SpinCredit::kRestMost);
  }
  EXPECT_EQ(expected, SpinCredit::kRestMost);
}

TEST_F(Account, ATryThatEarnsAllMakesTheNextRestShort) {
  for (int tries = 0; tries < 5; ++tries) {
    lose(milliseconds(2));
    rest();
  }
  find(static_cast<int>(SpinCredit::kMost / SpinCredit::kEarned) - 1);
  lose(milliseconds(20));
  EXPECT_EQ(rest(), 32 * SpinCredit::kRestLeast) << "one short of all: the rests go on growing";
  find(static_cast<int>(SpinCredit::kMost / SpinCredit::kEarned));
  lose(milliseconds(20));
  EXPECT_EQ(rest(), SpinCredit::kRestLeast);
}

TEST_F(Account, NothingIsEarnedNorLostWhileNobodyLooks) {
  lose(milliseconds(2));
  find(1'000'000);
  EXPECT_FALSE(may_spin());
  lose(milliseconds(50));
  EXPECT_EQ(rest(), SpinCredit::kRestLeast) << "the late loss of another thread makes no rest longer";
  lose(milliseconds(2));
  EXPECT_FALSE(may_spin()) << "and what was found meanwhile pays for nothing";
}

}  // namespace
}  // namespace hawser::base
