#include "backend/verbs/path/cancel_patience.h"

#include <gtest/gtest.h>

namespace hawser::backend::verbs {
namespace {

const Instant kCancelledAt = Instant::min() + std::chrono::seconds(1000);

TEST(CancelPatience, BeginsAtTheNextLookAndIsOverOnce) {
  CancelPatience patience;
  EXPECT_FALSE(patience.needs_look(kCancelledAt));
  EXPECT_EQ(patience.next_deadline(), Instant::max());
  patience.begin();
  EXPECT_TRUE(patience.needs_look(kCancelledAt));
  EXPECT_EQ(patience.next_deadline(), Instant::min()) << "whoever cancels knows no time";
  EXPECT_FALSE(patience.is_over(kCancelledAt));
  EXPECT_EQ(patience.next_deadline(), kCancelledAt + CancelPatience::kPatience);
  EXPECT_FALSE(patience.is_over(kCancelledAt + CancelPatience::kPatience - Duration(1)));
  EXPECT_TRUE(patience.is_over(kCancelledAt + CancelPatience::kPatience));
  EXPECT_FALSE(patience.is_over(kCancelledAt + 2 * CancelPatience::kPatience));
}

TEST(CancelPatience, WhatIsCancelledMeanwhileHasTheRestOfTheTime) {
  CancelPatience patience;
  patience.begin();
  EXPECT_FALSE(patience.is_over(kCancelledAt));
  patience.begin();
  EXPECT_FALSE(patience.is_over(kCancelledAt + Duration(1)));
  EXPECT_EQ(patience.next_deadline(), kCancelledAt + CancelPatience::kPatience);
}

}  // namespace
}  // namespace hawser::backend::verbs
