#include "cli/collectives_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace hawser::cli {
namespace {

constexpr std::array<std::uint64_t, 2> kSizes = {8, 64 << 20};

TEST(CollectivesView, TellsTheCheapestAndTheOthers) {
  const CollectivesReport report = collectives_report(4, 1, kSizes, schedule::Operation::kAllReduce, false);
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].choices[0].algorithm, schedule::Algorithm::kBoards);
  EXPECT_EQ(report.rows[1].choices[0].algorithm, schedule::Algorithm::kMapped);
  const Json told = to_json(report);
  EXPECT_EQ(told["schema"], "hawser.collectives/1");
  EXPECT_EQ(told["rows"][0]["operation"], "all_reduce");
  EXPECT_EQ(told["rows"][0]["choices"][0]["algorithm"], "boards");
  EXPECT_LE(told["rows"][0]["choices"][0]["cost_ns"], told["rows"][0]["choices"][1]["cost_ns"]);
  EXPECT_GT(told["model"]["message_ns"], 0);
}

TEST(CollectivesView, ChoosesByTheModelThatItIsGivenAndSaysWhereThatIsFrom) {
  const auto report = [](const coll::CostOrigin& costs) {
    return collectives_report(4, 1, kSizes, schedule::Operation::kAllReduce, false, costs);
  };
  const coll::CostOrigin other = {.model = {.board_ns = 1e9}, .from = "measured (m.toml)"};
  EXPECT_NE(report(other).rows[0].choices[0].algorithm, schedule::Algorithm::kBoards);
  EXPECT_NE(to_text(report(other)).find("Cost model: measured (m.toml)\n"), std::string::npos);
  EXPECT_NE(to_text(report(other)).find(" board 1e+09\n"), std::string::npos) << to_text(report(other));
  EXPECT_NE(to_text(report({})).find("Cost model: built in\n"), std::string::npos);
  EXPECT_EQ(to_json(report(other))["model"]["from"], "measured (m.toml)");
  EXPECT_EQ(to_json(report({}))["model"]["from"], "built in");
  EXPECT_EQ(to_json(report(other))["model"]["board_ns"], 1e9);
}

TEST(CollectivesView, SeveralHostsHaveTwoLevelsAndMemoryWithinEachHost) {
  const CollectivesReport report = collectives_report(16, 2, kSizes, schedule::Operation::kAllReduce, false);
  EXPECT_EQ(report.rows[0].choices[0].algorithm, schedule::Algorithm::kBoardsInHosts);
  EXPECT_EQ(report.rows[1].choices[0].algorithm, schedule::Algorithm::kMappedInHosts);
  EXPECT_EQ(report.rows[0].choices[1].algorithm, schedule::Algorithm::kTwoLevels);
  EXPECT_EQ(report.rows[1].choices[1].algorithm, schedule::Algorithm::kStagedInHosts);
  for (const CollectiveRow& row : report.rows) {
    for (const schedule::Choice& each : row.choices) {
      EXPECT_NE(each.algorithm, schedule::Algorithm::kBoards);
      EXPECT_NE(each.algorithm, schedule::Algorithm::kMapped);
    }
  }
}

TEST(CollectivesView, BlocksOfSeveralHostsGoByTreesOverThem) {
  for (const auto operation : {schedule::Operation::kAllGather, schedule::Operation::kReduceScatter}) {
    const CollectivesReport report = collectives_report(16, 2, kSizes, operation, false);
    EXPECT_EQ(report.rows[0].choices[0].algorithm, schedule::Algorithm::kBoardsInHosts);
    EXPECT_EQ(report.rows[0].choices[1].algorithm, schedule::Algorithm::kPat);
    EXPECT_EQ(report.rows[1].choices[0].algorithm, schedule::Algorithm::kMappedInHosts);
    const auto& large = report.rows[1].choices;
    EXPECT_NE(std::ranges::find(large, schedule::Algorithm::kPat, &schedule::Choice::algorithm), large.end());
    for (const CollectiveRow& row : collectives_report(16, 1, kSizes, operation, false).rows) {
      for (const schedule::Choice& each : row.choices) EXPECT_NE(each.algorithm, schedule::Algorithm::kPat);
    }
  }
}

TEST(CollectivesView, ReproducibleResultsHaveOneWay) {
  const CollectivesReport report = collectives_report(8, 1, kSizes, schedule::Operation::kAllReduce, true);
  ASSERT_EQ(report.rows[0].choices.size(), 1U);
  EXPECT_EQ(report.rows[0].choices[0].algorithm, schedule::Algorithm::kFixedTree);
}

TEST(CollectivesView, AllOperationsOfAnySizeFitATerminal) {
  for (const std::uint32_t ranks : {1U, 3U, 64U, 4096U}) {
    for (const std::uint32_t hosts : {1U, ranks}) {
      const CollectivesReport report = collectives_report(ranks, hosts, kSizes, std::nullopt, false);
      EXPECT_EQ(report.rows.size(), 21U) << "a barrier has no bytes";
      const std::string text = to_text(report);
      for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
        EXPECT_LE(text.find('\n', at) - at, 100U) << text;
      }
    }
  }
}

}  // namespace
}  // namespace hawser::cli
