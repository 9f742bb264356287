#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/quantiles.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

TEST(Table, AlignsAndLeavesNoBlanksAtLineEnds) {
  Table table({{"name"}, {"µs", Align::kRight}, {"note"}});
  table.add({"a", "12", "x"});
  table.add({"longer", "3"});
  EXPECT_EQ(table.to_string(),
            "name    µs  note\n"
            "a       12  x\n"
            "longer   3\n");
}

TEST(Table, LeavesOutSurplusCells) {
  Table table({{"one"}});
  table.add({"1", "2"});
  EXPECT_EQ(table.to_string(2), "  one\n  1\n");
}

TEST(Quantiles, AreSamplesByNearestRank) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 100; i > 0; --i) samples.push_back(i);
  const Quantiles q = quantiles_of(samples);
  EXPECT_EQ(q.min, 1u);
  EXPECT_EQ(q.p50, 50u);
  EXPECT_EQ(q.p99, 99u);
  EXPECT_EQ(q.max, 100u);
  EXPECT_EQ(quantiles_of({7}).p99, 7u);
  EXPECT_EQ(quantiles_of({}).count, 0u);
}

TEST(Units, AreShort) {
  EXPECT_EQ(short_size(0), "0 B");
  EXPECT_EQ(short_size(32768), "32 KiB");
  EXPECT_EQ(short_size((3ull << 30) / 2), "1.50 GiB");
  EXPECT_EQ(short_duration(Duration(812)), "812 ns");
  EXPECT_EQ(short_duration(Duration(3400)), "3.4 µs");
  EXPECT_EQ(short_duration(std::chrono::milliseconds(2500)), "2.50 s");
  EXPECT_EQ(short_rate(rate(2000, 1000)), "2.00");
  EXPECT_EQ(short_rate(rate(2000, 0)), "-");
}

}  // namespace
}  // namespace hawser::cli
