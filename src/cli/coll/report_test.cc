#include "cli/coll/report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/coll/call.h"

namespace hawser::cli::coll {
namespace {

using schedule::Algorithm;
using What = schedule::Operation;

void expect_fits(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    EXPECT_LE(text.find('\n', at) - at, 100U) << text;
  }
}

Place place(std::vector<std::uint32_t> hosts) {
  return {.hosts = std::move(hosts), .backends = "shm,tcp", .cost_model = "built in", .model = {}, .pinned = true};
}

TEST(CollReport, SetsTheModelBesideTheMeasuredTime) {
  Measured measured{.item = {.operation = What::kAllReduce, .bytes = 1 << 20}, .algorithm = Algorithm::kCirculant};
  for (int i = 1; i <= 100; ++i) measured.ns.push_back(1'000 * i);
  const Json report = bench_json(place({0, 0, 0, 0}), {measured});
  EXPECT_EQ(report["schema"], "hawser.bench_coll/1");
  EXPECT_EQ(report["ranks"], 4);
  EXPECT_EQ(report["hosts"], 1);
  const Json& row = report["rows"][0];
  EXPECT_EQ(row["algorithm"], "circulant");
  EXPECT_EQ(row["repetitions"], 100);
  EXPECT_EQ(row["p50_ns"], 50'000);
  EXPECT_EQ(row["p99_ns"], 99'000);
  const schedule::Call call = call_of(What::kAllReduce, 4, {}, 1 << 20);
  EXPECT_NEAR(row["model_ns"].get<double>(), cost_of(parts_of(call, Algorithm::kCirculant), {}), 1e-6);
  const std::string text = to_text(report);
  EXPECT_NE(text.find("4 ranks on one host; backends shm,tcp; cost model built in"), std::string::npos) << text;
  EXPECT_NE(text.find("coll_bench.py"), std::string::npos);
  EXPECT_EQ(text.find("Disturbed"), std::string::npos);
  expect_fits(text);
}

TEST(CollReport, AToldModelIsFolded) {
  Place told = place({0, 0});
  told.cost_model =
      "told by rank 0: message_ns = 1441, byte_ns = 0.1056, combined_byte_ns = 0.05277, read_byte_ns = 0.07444, "
      "board_ns = 1501, far_message_ns = 40000, far_byte_ns = 0.35";
  expect_fits(to_text(bench_json(told, {})));
}

/// The fastest is not the one that the built-in model takes for it.
TEST(CollReport, TellsWhatTheChoicesOfEachModelCost) {
  Tuned tuned;
  for (const auto& [algorithm, ns] : {std::pair(Algorithm::kBoards, 8'000.0), std::pair(Algorithm::kTree, 2'000.0)}) {
    const Parts parts = parts_of(call_of(What::kBroadcast, 2, {}, 8), algorithm);
    tuned.rows.push_back(
        {.item = {.operation = What::kBroadcast, .bytes = 8}, .algorithm = algorithm, .ns = ns, .parts = parts});
  }
  EXPECT_NEAR(price_of_choices(tuned, {}), 4, 1e-9);
  EXPECT_NEAR(price_of_choices(tuned, {.board_ns = 8'000}), 1, 1e-9);
  tuned.rows.pop_back();
  EXPECT_EQ(price_of_choices(tuned, {}), 1) << "there was no choice";
}

TEST(CollReport, SaysThatTheMachineWasDisturbed) {
  Json report = bench_json(place({0, 0}), {});
  report["others_cpu"] = 0.34;
  EXPECT_NE(to_text(report).find("Disturbed: other programs had 34% of this host's cores"), std::string::npos);
  report["others_cpu"] = 0.01;
  EXPECT_EQ(to_text(report).find("Disturbed"), std::string::npos);
}

TEST(CollReport, ATunedModelIsShownBesideTheBuiltInOneWithBothErrors) {
  Tuned tuned;
  const schedule::CostModel built_in;
  for (std::size_t i = 0; i < 5; ++i) {
    const double value = 2 * built_in.*schedule::kCostFields[i].value;
    tuned.file.costs[i] = {.value = value, .low = value / 2, .high = value * 2};
  }
  for (const bool is_fitted : {true, false}) {
    const schedule::Call call = call_of(What::kBroadcast, 2, {}, 64 << 10);
    const Parts parts = parts_of(call, Algorithm::kScatterGather);
    tuned.rows.push_back({.item = {.operation = What::kBroadcast, .bytes = 64 << 10},
                          .algorithm = Algorithm::kScatterGather,
                          .is_fitted = is_fitted,
                          .ns = cost_of(parts, built_in) * (is_fitted ? 2 : 3),
                          .parts = parts});
  }
  const Json report = tune_json(place({0, 0}), tuned);
  EXPECT_EQ(report["tune"]["costs"]["message_ns"]["value"], 4'000);
  EXPECT_FALSE(report["tune"]["costs"].contains("far_message_ns"));
  EXPECT_NEAR(report["tune"]["misfit"]["built_in"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(report["tune"]["misfit"]["tuned"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(report["tune"]["misfit_of_checks"]["tuned"].get<double>(), 1.5, 1e-9);
  EXPECT_EQ(runtime::parse_cost_file(report["tune"]["file"].get<std::string>(), "m").value(), tuned.file);
  const std::string text = to_text(report);
  EXPECT_NE(
      text.find("Off by, in the median: built in 2.00x, tuned 1.00x; at sizes that were not fitted: 3.00x and 1.50x."),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("Messages between hosts were not measured"), std::string::npos) << text;
  expect_fits(text);
}

}  // namespace
}  // namespace hawser::cli::coll
