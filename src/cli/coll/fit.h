#pragma once

// The fit of a cost model to measured times: the values for which the sum of relative errors is least. A few times that
// something else disturbed hardly move it, unlike squares of errors.
//
// Thread rule: pure functions.

#include <array>
#include <span>
#include <vector>

#include <hawser/status.h>

#include "cli/coll/call.h"
#include "runtime/cost_file.h"
#include "schedule/cost_model.h"

namespace hawser::cli::coll {

struct CostSample {
  Parts parts = {};
  double ns = 0;  ///< Measured. Above 0.
};

using Wanted = std::array<bool, schedule::kCostFields.size()>;  ///< Which values are fitted.
/// Those within hosts, or between them and what is combined there.
Wanted wanted_within_host();
Wanted wanted_between_hosts();

/// The others are 0. kInvalid, naming the value: it is nonsense (not above 0, or beyond the model's bound), or the
/// samples do not tell it from others.
Result<Parts> fit_costs(std::span<const CostSample> samples, const Wanted& wanted);

/// The fit of `all`, with the spread of fits of single rounds. kInvalid where that fit or those of most rounds are
/// nonsense, with the first reason: of values from a few good rounds nobody knows what they are worth.
Result<std::array<runtime::MeasuredCost, schedule::kCostFields.size()>> fit_rounds(
    std::span<const CostSample> all, std::span<const std::vector<CostSample>> rounds, const Wanted& wanted);

/// Of one value at least: a quarter of them is not above it. What disturbs a measurement makes it longer.
double lower_quartile_of(std::vector<double> values);
double median_of(std::vector<double> values);
/// The median of how many times too high or too low the model is: 1 is exact.
double misfit_of(std::span<const CostSample> samples, const schedule::CostModel& model);

}  // namespace hawser::cli::coll
