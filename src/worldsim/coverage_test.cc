#include "worldsim/coverage.h"

#include <gtest/gtest.h>

namespace hawser::worldsim {
namespace {

TEST(WorldCoverageTest, CountsCellsThatArePossible) {
  Coverage coverage;
  EXPECT_EQ(coverage.empty_cells(sim::Mode::kStream), kFaults * kMoments);
  EXPECT_EQ(coverage.empty_cells(sim::Mode::kMapped), 5 * kMoments);
  coverage.count(Fault::kReset, Moment::kAgree);
  Coverage sum;
  sum.add(coverage);
  sum.add(coverage);
  EXPECT_EQ(sum.count_of(Fault::kReset, Moment::kAgree), 2U);
  EXPECT_EQ(sum.empty_cells(sim::Mode::kStream), kFaults * kMoments - 1);
  EXPECT_EQ(sum.empty_cells(sim::Mode::kMapped), 5 * kMoments);
  EXPECT_NE(sum.table(sim::Mode::kStream).find("half close"), std::string::npos);
}

}  // namespace
}  // namespace hawser::worldsim
