#include "cli/coll/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/try.h"

namespace hawser::cli::coll {
namespace {

using schedule::CostField;
using schedule::kCostFields;

constexpr int kSteps = 200;
constexpr double kLeastError = 1e-9;  ///< Relative: below it a sample weighs no more.
constexpr double kLeastPivot = 1e-9;  ///< Of columns whose largest entry is 1.

/// Rows of relative parts, so that each sample's time is 1, with columns scaled to have 1 as their largest entry.
struct Equations {
  std::vector<std::size_t> fields;  ///< By column, its place in kCostFields.
  std::vector<double> scales;
  std::vector<std::vector<double>> rows;
};

Result<Equations> equations_of(std::span<const CostSample> samples, const Wanted& wanted) {
  Equations all;
  for (std::size_t i = 0; i < kCostFields.size(); ++i) {
    if (!wanted[i]) continue;
    double scale = 0;
    for (const CostSample& sample : samples) scale = std::max(scale, sample.parts[i] / sample.ns);
    if (!(scale > 0) || !std::isfinite(scale)) {
      return Status(Code::kInvalid, fmt::format("nothing that was measured depends on {}", kCostFields[i].name));
    }
    all.fields.push_back(i);
    all.scales.push_back(scale);
  }
  for (const CostSample& sample : samples) {
    std::vector<double> row;
    for (std::size_t column = 0; column < all.fields.size(); ++column) {
      row.push_back(sample.parts[all.fields[column]] / sample.ns / all.scales[column]);
    }
    all.rows.push_back(std::move(row));
  }
  return all;
}

/// Gauss with pivots. Nothing: two columns cannot be told apart.
std::optional<std::vector<double>> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  double largest = 0;
  for (const auto& row : a) largest = std::max(largest, std::abs(*std::ranges::max_element(row)));
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    if (!(std::abs(a[pivot][column]) > kLeastPivot * largest)) return std::nullopt;
    std::swap(a[pivot], a[column]);
    std::swap(b[pivot], b[column]);
    for (std::size_t row = column + 1; row < n; ++row) {
      const double factor = a[row][column] / a[column][column];
      for (std::size_t i = column; i < n; ++i) a[row][i] -= factor * a[column][i];
      b[row] -= factor * b[column];
    }
  }
  std::vector<double> x(n);
  for (std::size_t row = n; row-- > 0;) {
    double rest = b[row];
    for (std::size_t i = row + 1; i < n; ++i) rest -= a[row][i] * x[i];
    x[row] = rest / a[row][row];
  }
  return x;
}

std::optional<std::vector<double>> least_squares(const Equations& all, const std::vector<double>& weights) {
  const std::size_t n = all.fields.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n));
  std::vector<double> b(n);
  for (std::size_t k = 0; k < all.rows.size(); ++k) {
    const std::vector<double>& row = all.rows[k];
    for (std::size_t i = 0; i < n; ++i) {
      b[i] += weights[k] * row[i];
      for (std::size_t j = 0; j < n; ++j) a[i][j] += weights[k] * row[i] * row[j];
    }
  }
  return solve(std::move(a), std::move(b));
}

/// To digits that mean something.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

}  // namespace

double lower_quartile_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[(values.size() - 1) / 4];
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Wanted wanted_within_host() {
  Wanted wanted = {};
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = !kCostFields[i].is_far;
  return wanted;
}

Wanted wanted_between_hosts() {
  Wanted wanted = {};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] = kCostFields[i].is_far || kCostFields[i].value == &schedule::CostModel::combined_byte_ns;
  }
  return wanted;
}

/// Least squares again and again, where each sample weighs as much less as it is further off: so the sum of errors
/// becomes the least ("iteratively reweighted least squares").
Result<Parts> fit_costs(std::span<const CostSample> samples, const Wanted& wanted) {
  HAWSER_TRY_ASSIGN(const Equations all, equations_of(samples, wanted));
  std::vector<double> weights(samples.size(), 1), x;
  for (int step = 0; step < kSteps; ++step) {
    auto next = least_squares(all, weights);
    if (!next) {
      // Weights may leave too few samples that count; what was found before that fits those.
      if (!x.empty()) break;
      return Status(Code::kInvalid, "what was measured does not tell the values of the cost model apart");
    }
    x = std::move(*next);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      double time = 0;
      for (std::size_t i = 0; i < x.size(); ++i) time += all.rows[k][i] * x[i];
      weights[k] = 1 / std::max(std::abs(time - 1), kLeastError);
    }
  }
  Parts fitted = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = x[i] / all.scales[i];
    HAWSER_TRY(check_cost(kCostFields[all.fields[i]], value));
    fitted[all.fields[i]] = value;
  }
  return fitted;
}

Result<std::array<runtime::MeasuredCost, kCostFields.size()>> fit_rounds(
    std::span<const CostSample> all, std::span<const std::vector<CostSample>> rounds, const Wanted& wanted) {
  constexpr const char* kAdvice = "measure again with more --rounds while the machine is quiet";
  const Result<Parts> fitted = fit_costs(all, wanted);
  if (!fitted) return Status(fitted.error()).with_advice(kAdvice);
  std::vector<Parts> good = {*fitted};
  Status first;
  for (const std::vector<CostSample>& samples : rounds) {
    Result<Parts> of_round = fit_costs(samples, wanted);
    if (of_round) good.push_back(*of_round);
    if (!of_round && first.ok()) first = of_round.error();
  }
  const std::size_t bad = rounds.size() + 1 - good.size();
  if (bad * 2 > rounds.size()) {
    return Status(Code::kInvalid, fmt::format("of {} rounds {} give values that cannot be", rounds.size(), bad))
        .because(first)
        .with_advice(kAdvice);
  }
  std::array<runtime::MeasuredCost, kCostFields.size()> costs = {};
  for (std::size_t i = 0; i < kCostFields.size(); ++i) {
    if (!wanted[i]) continue;
    std::vector<double> values;
    for (const Parts& each : good) values.push_back(rounded(each[i]));
    const auto [low, high] = std::ranges::minmax(values);
    costs[i] = {.value = values.front(), .low = low, .high = high};
  }
  return costs;
}

double misfit_of(std::span<const CostSample> samples, const schedule::CostModel& model) {
  std::vector<double> factors;
  for (const CostSample& sample : samples) {
    const double ratio = cost_of(sample.parts, model) / sample.ns;
    factors.push_back(std::max(ratio, 1 / ratio));
  }
  return factors.empty() ? 1 : median_of(factors);
}

}  // namespace hawser::cli::coll
