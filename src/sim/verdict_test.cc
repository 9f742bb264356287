#include "sim/verdict.h"

#include <gtest/gtest.h>

#include "sim/test_lives.h"

namespace hawser::simulation {
namespace {

TEST(VerdictTest, TheFirstBrokenPromiseCounts) {
  TwoLives two;
  EXPECT_FALSE(two.verdict.failed());
  two.verdict.fail(two.b, "it lied");
  two.verdict.fail(two.a, "so did this");
  EXPECT_TRUE(two.verdict.failed());
  EXPECT_TRUE(two.verdict.failure().ends_with("agent-1 (life 1): it lied")) << two.verdict.failure();
}

TEST(VerdictTest, AWritersNumberIsGivenOnce) {
  WriterNumbers writers;
  EXPECT_EQ(writers.take(), 1u);
  EXPECT_EQ(writers.take(), 2u);
}

}  // namespace
}  // namespace hawser::simulation
