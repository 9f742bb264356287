#include "cli/coll/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"

namespace hawser::cli::coll {
namespace {

using schedule::CostModel;
using schedule::kCostFields;
using What = schedule::Operation;

const CostModel kTruth{.message_ns = 3'300,
                       .byte_ns = 0.21,
                       .combined_byte_ns = 0.05,
                       .read_byte_ns = 0.11,
                       .board_ns = 730,
                       .far_message_ns = 21'000,
                       .far_byte_ns = 0.8};

/// Every operation by every algorithm, at a few sizes.
std::vector<CostSample> samples(std::uint32_t ranks, bool far) {
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t rank = 0; far && rank < ranks; ++rank) hosts.push_back(rank);
  std::vector<CostSample> all;
  for (const What operation :
       {What::kBarrier, What::kBroadcast, What::kAllReduce, What::kAllGather, What::kReduceScatter}) {
    for (const std::uint64_t bytes : {8U, 4'096U, 65'536U, 1U << 20}) {
      const schedule::Call call = call_of(operation, ranks, hosts, bytes);
      for (const schedule::Choice& choice : schedule::choices(call, kTruth)) {
        all.push_back({.parts = parts_of(call, choice.algorithm), .ns = choice.cost_ns});
      }
    }
  }
  return all;
}

void expect_truth(const Parts& fitted, const Wanted& wanted, double tolerance) {
  for (std::size_t i = 0; i < fitted.size(); ++i) {
    const double truth = wanted[i] ? kTruth.*kCostFields[i].value : 0;
    EXPECT_NEAR(fitted[i], truth, tolerance * truth) << kCostFields[i].name;
  }
}

TEST(CostFit, FindsTheValuesThatMadeTheTimes) {
  for (const std::uint32_t ranks : {2U, 3U, 4U, 8U}) {
    expect_truth(fit_costs(samples(ranks, false), wanted_within_host()).value(), wanted_within_host(), 1e-6);
    expect_truth(fit_costs(samples(ranks, true), wanted_between_hosts()).value(), wanted_between_hosts(), 1e-6);
  }
}

TEST(CostFit, AFewDisturbedTimesHardlyMoveIt) {
  base::Rng rng(7);
  std::vector<CostSample> all = samples(4, false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].ns *= 0.98 + 0.04 * static_cast<double>(rng.below(1000)) / 1000;  // A little noise everywhere,
    if (i % 5 == 3) all[i].ns *= 2 + static_cast<double>(rng.below(20));     // and every fifth one disturbed.
  }
  expect_truth(fit_costs(all, wanted_within_host()).value(), wanted_within_host(), 0.1);
}

TEST(CostFit, NonsenseIsAnErrorThatNamesTheValue) {
  // Times that fall with the bytes.
  std::vector<CostSample> all;
  for (const std::uint64_t bytes : {65'536U, 262'144U, 1U << 20}) {
    const schedule::Call call = call_of(What::kBroadcast, 2, {}, bytes);
    all.push_back({.parts = parts_of(call, schedule::Algorithm::kTree), .ns = 1e9 / static_cast<double>(bytes)});
  }
  Wanted wanted = {};
  wanted[0] = wanted[1] = true;
  const Result<Parts> fitted = fit_costs(all, wanted);
  ASSERT_FALSE(fitted.has_value());
  EXPECT_EQ(fitted.error().code(), Code::kInvalid);
  EXPECT_NE(fitted.error().to_string().find("byte_ns = -"), std::string::npos) << fitted.error().to_string();
}

TEST(CostFit, WhatNothingDependsOnIsAnError) {
  const std::vector<CostSample> far = samples(4, true);
  const Result<Parts> fitted = fit_costs(far, wanted_within_host());
  ASSERT_FALSE(fitted.has_value());
  EXPECT_NE(fitted.error().to_string().find("depends on message_ns"), std::string::npos) << fitted.error().to_string();
  EXPECT_FALSE(fit_costs({}, wanted_within_host()).has_value());
}

TEST(CostFit, WhatCannotBeToldApartIsAnError) {
  const schedule::Call call = call_of(What::kBroadcast, 2, {}, 1 << 20);
  const CostSample one{.parts = parts_of(call, schedule::Algorithm::kTree), .ns = 1e5};
  Wanted wanted = {};
  wanted[0] = wanted[1] = true;
  const Result<Parts> fitted = fit_costs(std::vector<CostSample>(5, one), wanted);
  ASSERT_FALSE(fitted.has_value());
  EXPECT_NE(fitted.error().to_string().find("apart"), std::string::npos) << fitted.error().to_string();
}

TEST(CostFit, ValuesBeyondTheModelsBoundsAreAnError) {
  const schedule::Call call = call_of(What::kBarrier, 2, {}, 0);
  Wanted wanted = {};
  wanted[0] = true;
  const auto fit = [&](double ns) {
    return fit_costs(std::vector<CostSample>{{.parts = parts_of(call, schedule::Algorithm::kDissemination), .ns = ns}},
                     wanted);
  };
  EXPECT_TRUE(fit(schedule::kCallNsMax * 0.99).has_value());
  EXPECT_FALSE(fit(schedule::kCallNsMax * 1.01).has_value());
}

TEST(CostFit, HasTheSpreadOfTheRounds) {
  std::vector<std::vector<CostSample>> rounds;
  for (const double factor : {1.1, 0.9, 7.0}) {
    rounds.push_back(samples(4, false));
    for (CostSample& sample : rounds.back()) sample.ns *= factor;
  }
  const auto costs = fit_rounds(samples(4, false), rounds, wanted_within_host()).value();
  EXPECT_EQ(costs[0], (runtime::MeasuredCost{.value = 3'300, .low = 2'970, .high = 23'100}));
  EXPECT_EQ(costs[1], (runtime::MeasuredCost{.value = 0.21, .low = 0.189, .high = 1.47}));
  EXPECT_EQ(costs[5], runtime::MeasuredCost()) << "not measured";
}

TEST(CostFit, ValuesHaveFourDigits) {
  std::vector<CostSample> all = samples(4, false);
  for (CostSample& sample : all) sample.ns *= 1.000123456;
  EXPECT_EQ(fit_rounds(all, std::vector<std::vector<CostSample>>(1, all), wanted_within_host()).value()[4].value,
            730.1);
}

TEST(CostFit, MostRoundsMustMakeSense) {
  const std::vector<CostSample> good = samples(4, false), bad;
  EXPECT_TRUE(fit_rounds(good, std::vector{good, bad}, wanted_within_host()).has_value());
  EXPECT_FALSE(fit_rounds(bad, std::vector{good, good}, wanted_within_host()).has_value());
  const auto costs = fit_rounds(good, std::vector{bad, good, bad}, wanted_within_host());
  ASSERT_FALSE(costs.has_value());
  EXPECT_EQ(costs.error().code(), Code::kInvalid);
  EXPECT_NE(costs.error().to_string().find("of 3 rounds 2 give values that cannot be"), std::string::npos);
  EXPECT_NE(costs.error().to_string().find("more --rounds"), std::string::npos);
}

TEST(CostFit, TheLowerQuartileIsOneOfTheValues) {
  EXPECT_EQ(lower_quartile_of({7}), 7);
  EXPECT_EQ(lower_quartile_of({9, 1, 5, 3}), 1);
  EXPECT_EQ(lower_quartile_of({9, 1, 5, 3, 7}), 3);
  EXPECT_EQ(median_of({9, 1, 5, 3}), 4);
}

TEST(CostFit, TheMisfitIsHowManyTimesTheModelIsOff) {
  const std::vector<CostSample> all = samples(4, false);
  EXPECT_NEAR(misfit_of(all, kTruth), 1, 1e-9);
  CostModel twice = kTruth, half = kTruth;
  for (const schedule::CostField& field : kCostFields) twice.*field.value *= 2, half.*field.value /= 2;
  EXPECT_NEAR(misfit_of(all, twice), 2, 1e-9);
  EXPECT_NEAR(misfit_of(all, half), 2, 1e-9);
}

}  // namespace
}  // namespace hawser::cli::coll
