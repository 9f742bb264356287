#include "quicsim/coverage.h"

#include <gtest/gtest.h>

namespace hawser::quicsim {
namespace {

TEST(QuicCoverage, CountsPairsAndNamesThem) {
  Coverage one, sum;
  EXPECT_EQ(one.empty_cells(sim::Mode::kStream), kFaults * kMoments - 1) << "keys in the handshake are no cell";
  one.count(Fault::kMove, Moment::kFlowing);
  sum.add(one), sum.add(one);
  EXPECT_EQ(sum.count_of(Fault::kMove, Moment::kFlowing), 2u);
  EXPECT_EQ(sum.empty_cells(sim::Mode::kStream), kFaults * kMoments - 2);
  const std::string table = sum.table(sim::Mode::kStream);
  EXPECT_NE(table.find("held up"), std::string::npos) << table;
  EXPECT_NE(table.find("replay"), std::string::npos) << table;
}

}  // namespace
}  // namespace hawser::quicsim
