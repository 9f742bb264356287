#include "base/yield_price.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(YieldPrice, AThreadYieldsAtOnceAsLongAsItIsSoonBack) {
  YieldPrice price;
  EXPECT_EQ(price.patience(), Duration::zero());
  for (const Duration took : {Duration(nanoseconds(300)), Duration(microseconds(7)), Duration(microseconds(99))}) {
    price.note(took);
    EXPECT_EQ(price.patience(), Duration::zero());
  }
}

TEST(YieldPrice, AfterALostSliceItSpinsForASixteenthOfIt) {
  YieldPrice price;
  price.note(milliseconds(2));
  EXPECT_EQ(price.patience(), microseconds(125));
  price.note(microseconds(160));  // Less than the one before: half of that still counts.
  EXPECT_EQ(price.patience(), nanoseconds(62'500));
  price.note(milliseconds(3));
  EXPECT_EQ(price.patience(), nanoseconds(187'500));
}

TEST(YieldPrice, OneThatWasAwayForVeryLongStillYieldsSoon) {
  YieldPrice price;
  price.note(std::chrono::seconds(4));
  EXPECT_EQ(price.patience(), YieldPrice::kPatienceMax);
}

TEST(YieldPrice, AfterAFewCheapYieldsItYieldsAtOnceAgain) {
  YieldPrice price;
  price.note(milliseconds(3));
  Duration spun = Duration::zero();
  int yields = 0;
  for (; price.patience() > Duration::zero(); ++yields) {
    spun += price.patience();
    price.note(microseconds(5));
  }
  EXPECT_EQ(yields, 5);
  EXPECT_LE(spun, microseconds(3000) / 8) << "what was spun for nothing is a small part of the slice that was lost";
}

}  // namespace
}  // namespace hawser::base
