#include "cli/sim_report.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

SimReport two_seeds() {
  SimReport report{.first = 7, .mode = sim::Mode::kMapped, .batch = {}};
  report.batch.seeds = 2;
  report.batch.hash = 0xabc;
  report.batch.sum.coverage.count(sim::Mode::kMapped, simulation::Fault::kCrash, simulation::Step::kClose);
  return report;
}

TEST(SimReport, GoodSeeds) {
  const SimReport report = two_seeds();
  EXPECT_TRUE(verdict(report).ok());
  const Json made = to_json(report);
  EXPECT_EQ(made["schema"], "hawser.sim/1");
  EXPECT_EQ(made["ok"], true);
  EXPECT_EQ(made["hash"], "0000000000000abc");
  EXPECT_TRUE(made["failures"].empty());
  std::size_t met = 0;
  for (const Json& row : made["coverage"]) {
    if (row["count"] == 0) continue;
    ++met;
    EXPECT_EQ(row["fault"], "crash");
    EXPECT_EQ(row["phase"], "close");
  }
  EXPECT_EQ(met, 1u);
  EXPECT_NE(to_text(report).find("2 seeds in mode mapped, 0 failed"), std::string::npos) << to_text(report);
}

TEST(SimReport, AFailedSeedSaysHowToSeeItAgain) {
  SimReport report = two_seeds();
  report.batch.failed.push_back({.seed = 8, .failure = "at 1.5 s, agent-0: lost a byte"});
  const Status status = verdict(report);
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_NE(status.message().find("seed 8: at 1.5 s"), std::string::npos) << status.to_string();
  EXPECT_EQ(status.advice(), "hawser sim --seed 8 --mode mapped --trace");
  const Json made = to_json(report);
  EXPECT_EQ(made["ok"], false);
  EXPECT_EQ(made["failures"][0]["seed"], 8);
  EXPECT_EQ(made["failures"][0]["replay"], "hawser sim --seed 8 --mode mapped --trace");
}

}  // namespace
}  // namespace hawser::cli
