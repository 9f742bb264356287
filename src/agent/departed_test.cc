#include "agent/departed.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

const Status kCause(Code::kDisconnected, "its process ended");

TEST(Departed, ADeadCardStaysDeadUntilItIsWrittenAnew) {
  Departed departed;
  EXPECT_FALSE(departed.judge({1, 1}, 5));
  departed.add({1, 1}, kCause);
  ASSERT_TRUE(departed.judge({1, 1}, 5));
  EXPECT_EQ(departed.judge({1, 1}, 5)->message(), kCause.message());
  EXPECT_FALSE(departed.judge({1, 1}, 6));
  EXPECT_FALSE(departed.judge({1, 1}, 5));  // It lives.
}

TEST(Departed, ASessionWithItProvesThatItLives) {
  Departed departed;
  departed.add({1, 1}, kCause);
  departed.remove({1, 1});
  departed.remove({1, 1});
  EXPECT_FALSE(departed.judge({1, 1}, 1));
}

TEST(Departed, IsBounded) {
  Departed departed;
  for (std::uint64_t i = 0; i <= kDepartedMax; ++i) departed.add({1, i}, kCause);
  EXPECT_FALSE(departed.judge({1, 0}, 1));
  EXPECT_TRUE(departed.judge({1, 1}, 1));
  EXPECT_TRUE(departed.judge({1, kDepartedMax}, 1));
}

}  // namespace
}  // namespace hawser::agent
