#include "cli/bench/contest.h"

#include <gtest/gtest.h>

#include "cli/bench/figure.h"

namespace hawser::cli::bench {
namespace {

Slice constant(double figure) {
  return [figure](Duration) -> Result<double> { return figure; };
}

TEST(BenchContest, RatioIsTheMedianOfRoundsAgainstTheBestCeiling) {
  const Contest contest{.better = Better::kHigher, .subject = {"s", {}}, .ceilings = {{"slow", {}}, {"fast", {}}}};
  const std::vector<Round> rounds = {{Placement::kNear, 9, {5, 10}},
                                     {Placement::kNear, 4, {5, 5}},
                                     {Placement::kNear, 90, {5, 100}},
                                     {Placement::kFar, 1, {9, 1}}};
  const Comparison near = compare(rounds, contest, Placement::kNear);
  EXPECT_EQ(near.rounds, 3u);
  EXPECT_EQ(near.ceiling_how, "fast");
  EXPECT_DOUBLE_EQ(near.value, 9);
  EXPECT_DOUBLE_EQ(near.ceiling, 10);
  EXPECT_DOUBLE_EQ(near.ratio, 0.9);
  EXPECT_EQ(compare(rounds, contest, Placement::kFar).ceiling_how, "slow");
}

TEST(BenchContest, LowerIsBetterTakesTheLowestCeiling) {
  const Contest contest{.better = Better::kLower, .subject = {"s", {}}, .ceilings = {{"slow", {}}, {"fast", {}}}};
  const Comparison result = compare({{Placement::kNear, 30, {20, 10}}}, contest, Placement::kNear);
  EXPECT_EQ(result.ceiling_how, "fast");
  EXPECT_DOUBLE_EQ(result.ratio, 3);
}

TEST(BenchContest, RoundsOfAnotherPlacementAreRunAgainAndKeptApart) {
  const Contest contest{
      .better = Better::kHigher, .subject = {"s", constant(5)}, .ceilings = {{"c", constant(10)}}, .placed = true};
  int probes = 0;
  ContestOptions options{.rounds = 3, .slice = Duration(1), .probe = [&] { return probes++ == 1 ? 600 : 120; }};
  const Result<Figure> figure = run_contest(contest, options);
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->discarded, 1u);
  EXPECT_EQ(figure->best.rounds, 3u);
  EXPECT_EQ(figure->best.placement, Placement::kNear);
  EXPECT_EQ(figure->placements.size(), 1u);
  EXPECT_DOUBLE_EQ(figure->best.ratio, 0.5);
}

TEST(BenchContest, HopelessCeilingsAreLeftOutAfterTheTrial) {
  int slow = 0, fast = 0;
  const Contest contest{.better = Better::kHigher,
                        .subject = {"s", constant(5)},
                        .ceilings = {{"slow", [&](Duration) -> Result<double> { return ++slow, 1.0; }},
                                     {"fast", [&](Duration) -> Result<double> { return ++fast, 10.0; }}}};
  const Result<Figure> figure = run_contest(contest, {.rounds = 5, .slice = Duration(1), .probe = [] { return 100; }});
  ASSERT_TRUE(figure);
  EXPECT_EQ(slow, 2);
  EXPECT_EQ(fast, 5);
  EXPECT_EQ(figure->best.ceiling_how, "fast");
}

TEST(BenchContest, AnErrorEndsIt) {
  const Contest contest{
      .better = Better::kHigher,
      .subject = {"s", [](Duration) -> Result<double> { return Status(Code::kDisconnected, "gone"); }},
      .ceilings = {}};
  EXPECT_EQ(run_contest(contest, {.rounds = 1, .slice = Duration(1), .probe = [] { return 100; }}).error().code(),
            Code::kDisconnected);
}

TEST(BenchFigure, TargetsAreJudgedByTheirKind) {
  Figure figure;
  figure.best = {.value = 120, .ceiling = 100, .ratio = 1.2};
  const auto met = [&](Target target) { return is_met({.target = target}, figure); };
  EXPECT_EQ(met(ratio_at_most(1.2)), true);
  EXPECT_EQ(met(ratio_at_least(1.25)), false);
  EXPECT_EQ(met(value_at_most(120)), true);
  EXPECT_EQ(met(value_below(120)), false);
  EXPECT_EQ(met({}), std::nullopt);
}

}  // namespace
}  // namespace hawser::cli::bench
