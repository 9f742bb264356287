#include "cli/world_sim_report.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

WorldSimReport one_seed() {
  WorldSimReport report{.first = 7, .mode = sim::Mode::kMapped, .batch = {}};
  report.batch.seeds = 2;
  report.batch.hash = 0xabc;
  report.batch.sum.coverage.count(worldsim::Fault::kCrash, worldsim::Moment::kShrink);
  return report;
}

TEST(WorldSimReport, GoodSeeds) {
  const WorldSimReport report = one_seed();
  EXPECT_TRUE(verdict(report).ok());
  const Json told = to_json(report);
  EXPECT_EQ(told["schema"], "hawser.sim/1");
  EXPECT_EQ(told["what"], "world");
  EXPECT_EQ(told["hash"], "0000000000000abc");
  EXPECT_TRUE(told["failures"].empty());
  std::size_t met = 0;
  for (const Json& row : told["coverage"]) met += row["count"] == 0 ? 0U : 1U;
  EXPECT_EQ(met, 1U);
  EXPECT_NE(to_text(report).find("2 seeds of worlds in mode mapped, 0 failed"), std::string::npos) << to_text(report);
}

TEST(WorldSimReport, AFailedSeedSaysHowToSeeItAgain) {
  WorldSimReport report = one_seed();
  report.batch.failed.push_back({.seed = 8, .failure = "at 1.5 s, rank 0: a barrier ended early"});
  EXPECT_EQ(verdict(report).code(), Code::kFailed);
  EXPECT_EQ(verdict(report).advice(), "hawser sim --what world --seed 8 --mode mapped --trace");
  const Json told = to_json(report);
  EXPECT_EQ(told["ok"], false);
  EXPECT_EQ(told["failures"][0]["replay"], "hawser sim --what world --seed 8 --mode mapped --trace");
}

}  // namespace
}  // namespace hawser::cli
