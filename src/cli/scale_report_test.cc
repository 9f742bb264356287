#include "cli/scale_report.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

ScaleReport one_row() {
  return {.ranks = 4096,
          .rows = {{.operation = "all_reduce",
                    .algorithm = "doubling",
                    .bytes = 8,
                    .time_ns = 25'200,
                    .bound_ns = 24'000,
                    .messages = 49'152}}};
}

TEST(ScaleReport, TellsTheRatio) {
  const Json told = to_json(one_row());
  EXPECT_EQ(told["schema"], "hawser.sim/1");
  EXPECT_EQ(told["what"], "scale");
  EXPECT_DOUBLE_EQ(told["rows"][0]["ratio"], 1.05);
  EXPECT_EQ(told["rows"][0]["messages"], 49'152);
}

TEST(ScaleReport, FitsATerminal) {
  const std::string text = to_text(one_row());
  EXPECT_NE(text.find("all_reduce"), std::string::npos);
  EXPECT_NE(text.find("1.05"), std::string::npos);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    EXPECT_LE(text.find('\n', at) - at, 100U);
  }
}

}  // namespace
}  // namespace hawser::cli
