#include "cli/quic_sim_report.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

QuicSimReport two_quic_seeds() {
  QuicSimReport report{.first = 7, .batch = {}};
  report.batch.seeds = 2;
  report.batch.hash = 0xabc;
  report.batch.sum.coverage.count(quicsim::Fault::kMove, quicsim::Moment::kFlowing);
  return report;
}

TEST(QuicSimReport, GoodSeeds) {
  const QuicSimReport report = two_quic_seeds();
  EXPECT_TRUE(verdict(report).ok());
  const Json told = to_json(report);
  EXPECT_EQ(told["schema"], "hawser.sim/1");
  EXPECT_EQ(told["what"], "quic");
  EXPECT_EQ(told["hash"], "0000000000000abc");
  EXPECT_TRUE(told["failures"].empty());
  std::size_t met = 0;
  for (const Json& row : told["coverage"]) met += row["count"] == 0 ? 0U : 1U;
  EXPECT_EQ(met, 1U);
  EXPECT_NE(to_text(report).find("2 seeds of QUIC, 0 failed"), std::string::npos) << to_text(report);
}

TEST(QuicSimReport, AFailedSeedSaysHowToSeeItAgain) {
  QuicSimReport report = two_quic_seeds();
  report.batch.failed.push_back({.seed = 8, .failure = "at 1.5 s, c0o: is due again and again"});
  EXPECT_EQ(verdict(report).code(), Code::kFailed);
  EXPECT_EQ(verdict(report).advice(), "hawser sim --what quic --seed 8 --trace");
  EXPECT_EQ(to_json(report)["failures"][0]["replay"], "hawser sim --what quic --seed 8 --trace");
}

}  // namespace
}  // namespace hawser::cli
