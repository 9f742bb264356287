#include "report.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string_view>

namespace nixl_bench {
namespace {

constexpr double kLevel = 0.97;
constexpr double kNearCeiling = 0.95;

std::string number(double value) {
  char text[32];
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::vector<double> values_of(const Figure& figure, double Timing::*member) {
  std::vector<double> values;
  for (const Timing& one : figure.rounds) values.push_back(one.*member);
  return values;
}

const Figure* good(const RowResult& result, const std::string& library) {
  const auto found = result.figures.find(library);
  return found == result.figures.end() || found->second.rounds.empty() ? nullptr : &found->second;
}

double median_of(const Figure& figure, double Timing::*member) { return median(values_of(figure, member)); }

/// A percentile of one operation, with its unit; rates have the time of an operation there, too.
std::string time_text(const RowResult& result, double value) {
  if (result.row.unit == Unit::kBytes) return number(value) + " B";
  if (value >= 1e6) return number(value / 1e6) + " ms";
  if (value >= 1e3) return number(value / 1e3) + " us";
  return number(value) + " ns";
}

/// The slowest way that is a ceiling for memory which the client owns, which is what verdicts go by; 0: none.
double bound_ns(const RowResult& result) {
  double bound = 0;
  for (const auto& [way, rounds] : result.ceilings) bound = std::max(bound, median(rounds));
  return bound;
}

double of_ceiling(const RowResult& result, const Figure& figure) {
  return bound_ns(result) / median_of(figure, &Timing::value);
}

std::string value_text(const RowResult& result, const std::string& library) {
  const Figure* const figure = good(result, library);
  if (figure == nullptr) return "failed";
  return number(shown(result.measurement, result.row, median_of(*figure, &Timing::value)));
}

std::string quantile_text(const RowResult& result, const std::string& library) {
  const Figure* const figure = good(result, library);
  if (figure == nullptr) return "-";
  return time_text(result, median_of(*figure, &Timing::p50)) + " / " +
         time_text(result, median_of(*figure, &Timing::p99));
}

std::string ceiling_text(const RowResult& result) {
  std::string text;
  for (const auto& [way, rounds] : result.ceilings) {
    if (!text.empty()) text += ", ";
    text += number(shown(result.measurement, result.row, median(rounds))) + " " + way;
  }
  return text;
}

std::string line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double advantage(const RowResult& result, const std::string& one, const std::string& other) {
  const Figure *const ours = good(result, one), *const theirs = good(result, other);
  if (ours == nullptr || theirs == nullptr) return 0;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours->rounds.size(), theirs->rounds.size()); ++i) {
    ratios.push_back(theirs->rounds[i].value / ours->rounds[i].value);
  }
  return median(ratios);
}

std::string verdict(const RowResult& result, const std::string& one, const std::string& other) {
  const double ratio = advantage(result, one, other);
  if (ratio == 0) return "-";
  if (ratio >= 1) return "ahead";
  const bool both_near = of_ceiling(result, *good(result, one)) >= kNearCeiling &&
                         of_ceiling(result, *good(result, other)) >= kNearCeiling;
  return both_near && ratio >= kLevel ? "level" : "behind";
}

std::string table(const std::vector<RowResult>& results, const std::vector<std::string>& libraries) {
  const std::string& reference = libraries.back();
  std::vector<std::string> head = {"row", "unit"}, rule;
  for (const std::string& one : libraries) head.push_back(one);
  for (const std::string& one : libraries) {
    if (one != reference) head.push_back("ratio " + one);
  }
  for (const std::string& one : libraries) head.push_back("p50 / p99 " + one);
  head.insert(head.end(), {"ceiling", "cores", "verdict"});
  rule.assign(head.size(), "---");
  std::string text = line(head) + "|" + [&] {
    std::string dashes;
    for (const std::string& one : rule) dashes += one + "|";
    return dashes + "\n";
  }();
  for (const RowResult& result : results) {
    std::vector<std::string> cells = {"`" + result.row.id + "`", std::string(unit_name(result.row.unit))};
    std::string verdicts;
    for (const std::string& one : libraries) cells.push_back(value_text(result, one));
    for (const std::string& one : libraries) {
      if (one == reference) continue;
      cells.push_back(number(advantage(result, one, reference)));
      verdicts += (verdicts.empty() ? "" : ", ") + verdict(result, one, reference);
    }
    for (const std::string& one : libraries) cells.push_back(quantile_text(result, one));
    cells.insert(cells.end(), {ceiling_text(result), result.cores, verdicts});
    text += line(cells);
  }
  return text;
}

Json to_json(const std::vector<RowResult>& results, const std::vector<std::string>& libraries) {
  const std::string& reference = libraries.back();
  Json rows = Json::array();
  for (const RowResult& result : results) {
    Json row = {{"id", result.row.id}, {"unit", unit_name(result.row.unit)}, {"cores", result.cores}};
    for (const auto& [name, figure] : result.figures) {
      Json& one = row["libraries"][name];
      if (!figure.error.empty()) one["error"] = figure.error;
      if (figure.rounds.empty()) continue;
      one["value"] = shown(result.measurement, result.row, median_of(figure, &Timing::value));
      one["p50"] = median_of(figure, &Timing::p50);
      one["p99"] = median_of(figure, &Timing::p99);
      for (const Timing& round : figure.rounds) {
        one["rounds"].push_back({{"value", shown(result.measurement, result.row, round.value)},
                                 {"p50", round.p50},
                                 {"p99", round.p99},
                                 {"count", round.count}});
      }
      if (name == reference) continue;
      one["ratio"] = advantage(result, name, reference);
      one["verdict"] = verdict(result, name, reference);
    }
    for (const auto& [way, rounds] : result.ceilings) {
      row["ceilings"][way] = shown(result.measurement, result.row, median(rounds));
    }
    rows.push_back(std::move(row));
  }
  return {{"libraries", libraries}, {"reference", reference}, {"rows", rows}};
}

}  // namespace nixl_bench
