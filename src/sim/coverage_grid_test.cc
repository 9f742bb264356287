#include "sim/coverage_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace hawser::simulation {
namespace {

bool is_possible(std::size_t row, std::size_t column) { return row != 1 || column != 2; }

TEST(CoverageGrid, CountsAndAdds) {
  CoverageGrid one(2, 3), sum(2, 3);
  EXPECT_EQ(one.empty_cells(is_possible), 5u) << "one of six is impossible";
  one.count(0, 2);
  one.count(1, 0);
  sum.add(one), sum.add(one);
  EXPECT_EQ(sum.count_of(0, 2), 2u);
  EXPECT_EQ(sum.count_of(1, 0), 2u);
  EXPECT_EQ(sum.count_of(0, 0), 0u);
  EXPECT_EQ(sum.empty_cells(is_possible), 3u);
}

TEST(CoverageGrid, ItsTableNamesRowsAndColumns) {
  CoverageGrid grid(2, 3);
  grid.count(0, 1);
  constexpr std::array<std::string_view, 3> kNames{"first", "second", "third"};
  const auto name = [&](std::size_t at) { return kNames[at]; };
  EXPECT_EQ(grid.table({.corner = "grid", .row = name, .column = name}, is_possible),
            "grid                 first        second         third\n"
            "first                    0             1             0\n"
            "second                   0             0             -\n");
}

}  // namespace
}  // namespace hawser::simulation
