#include "cli/coll/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/bench/disturbance.h"
#include "cli/coll/call.h"
#include "cli/quantiles.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/wrap.h"

namespace hawser::cli::coll {
namespace {

Json begin_report(const Place& place) {
  Json json = document(kBenchColl);
  json["ok"] = true;
  json["ranks"] = place.hosts.size();
  json["hosts"] = std::set<std::uint32_t>(place.hosts.begin(), place.hosts.end()).size();
  json["backends"] = place.backends;
  json["pinned"] = place.pinned;
  json["cost_model"] = place.cost_model;
  return json;
}

Json row_of(const Item& item, schedule::Algorithm algorithm) {
  return {{"operation", schedule::to_string(item.operation)},
          {"bytes", item.bytes},
          {"algorithm", schedule::to_string(algorithm)},
          {"mapped", item.mapped}};
}

std::string time_of(const Json& row, const char* name) {
  return short_duration(Duration(static_cast<std::int64_t>(row.at(name).get<double>())));
}

std::string size_of(const Json& row) {
  const auto bytes = row.at("bytes").get<std::uint64_t>();
  return bytes == 0 ? "" : short_size(bytes);
}

std::string times(double factor) { return fmt::format("{:.2f}x", factor); }

std::string bench_text(const Json& report) {
  Table table({{"operation"},
               {"bytes", Align::kRight},
               {"goes by"},
               {"p50", Align::kRight},
               {"p99", Align::kRight},
               {"model", Align::kRight},
               {"model / p50", Align::kRight}});
  for (const Json& row : report.at("rows")) {
    const double model = row.at("model_ns").get<double>();
    table.add({row.at("operation").get<std::string>(), size_of(row), row.at("algorithm").get<std::string>(),
               time_of(row, "p50_ns"), time_of(row, "p99_ns"), time_of(row, "model_ns"),
               times(model / row.at("p50_ns").get<double>())});
  }
  return table.to_string() +
         "\nEvery input was written anew, and every result compared with the right one.\n"
         "Beside MPI and Gloo: python bench/coll_bench.py (docs/collectives.md, \"How fast\").\n";
}

std::string costs_text(const Json& tune) {
  Table table(
      {{"value, ns"}, {"built in", Align::kRight}, {"measured", Align::kRight}, {"of the rounds", Align::kRight}});
  const schedule::CostModel built_in;
  for (const schedule::CostField& field : schedule::kCostFields) {
    const std::string name(field.name);
    std::string value = "-", spread;
    if (tune.at("costs").contains(name)) {
      const Json& cost = tune.at("costs").at(name);
      value = fmt::format("{:.4g}", cost.at("value").get<double>());
      spread = fmt::format("{:.4g} to {:.4g}", cost.at("low").get<double>(), cost.at("high").get<double>());
    }
    table.add({name, fmt::format("{:.4g}", built_in.*field.value), value, spread});
  }
  return table.to_string();
}

std::string tune_text(const Json& report) {
  const Json& tune = report.at("tune");
  Table table({{"operation"},
               {"bytes", Align::kRight},
               {"by"},
               {"measured", Align::kRight},
               {"built in", Align::kRight},
               {"tuned", Align::kRight},
               {""}});
  for (const Json& row : report.at("rows")) {
    table.add({row.at("operation").get<std::string>(), size_of(row), row.at("algorithm").get<std::string>(),
               time_of(row, "measured_ns"), time_of(row, "built_in_ns"), time_of(row, "tuned_ns"),
               fmt::format("{}{}", row.at("far").get<bool>() ? "between hosts" : "",
                           row.at("fitted").get<bool>() ? ""
                           : row.at("far").get<bool>()  ? ", check"
                                                        : "check")});
  }
  std::string text = table.to_string() + "\n" + costs_text(tune);
  const auto misfit = [&](const char* what, const char* model) { return times(tune.at(what).at(model).get<double>()); };
  text += fmt::format("\nOff by, in the median: built in {}, tuned {}; at sizes that were not fitted: {} and {}.\n",
                      misfit("misfit", "built_in"), misfit("misfit", "tuned"), misfit("misfit_of_checks", "built_in"),
                      misfit("misfit_of_checks", "tuned"));
  text += fmt::format("Calls go by algorithms that take, beside the fastest: built in {}, tuned {}.\n",
                      misfit("price", "built_in"), misfit("price", "tuned"));
  if (tune.at("price").at("tuned").get<double>() > tune.at("price").at("built_in").get<double>()) {
    text += "So the built-in model chooses better here. Measure again, or do without this file.\n";
  }
  if (!tune.at("has_between_hosts").get<bool>()) {
    text += "Messages between hosts were not measured: all ranks are on one. --hosts measures them, too.\n";
  }
  if (!tune.at("has_within_host").get<bool>()) {
    text += "Within a host nothing was measured: rank 0 is alone on its own.\n";
  }
  return text;
}

}  // namespace

Json bench_json(const Place& place, const std::vector<Measured>& all) {
  Json json = begin_report(place);
  json["rows"] = Json::array();
  for (const Measured& each : all) {
    const auto ranks = static_cast<std::uint32_t>(place.hosts.size());
    const schedule::Call call = call_of(each.item.operation, ranks, place.hosts, each.item.bytes);
    std::vector<std::uint64_t> ns;
    for (const double time : each.ns) ns.push_back(static_cast<std::uint64_t>(time));
    const Quantiles found = quantiles_of(std::move(ns));
    double model = 0;
    for (const schedule::Choice& choice : schedule::choices(call, place.model)) {
      if (choice.algorithm == each.algorithm) model = choice.cost_ns;
    }
    Json row = row_of(each.item, each.algorithm);
    row["repetitions"] = found.count;
    row["p50_ns"] = found.p50;
    row["p99_ns"] = found.p99;
    row["model_ns"] = model;
    json["rows"].push_back(std::move(row));
  }
  return json;
}

Json tune_json(const Place& place, const Tuned& tuned) {
  const schedule::CostModel built_in, model = tuned.file.model();
  Json json = begin_report(place);
  Json& tune = json["tune"];
  tune["rounds"] = tuned.file.rounds;
  tune["has_within_host"] = tuned.file.has(false);
  tune["has_between_hosts"] = tuned.file.has(true);
  tune["costs"] = Json::object();
  for (std::size_t i = 0; i < schedule::kCostFields.size(); ++i) {
    if (!tuned.file.costs[i]) continue;
    const runtime::MeasuredCost& cost = *tuned.file.costs[i];
    tune["costs"][std::string(schedule::kCostFields[i].name)] = {
        {"value", cost.value}, {"low", cost.low}, {"high", cost.high}};
  }
  for (const bool fitted : {true, false}) {
    tune[fitted ? "misfit" : "misfit_of_checks"] = {{"built_in", misfit_of(tuned, built_in, fitted)},
                                                    {"tuned", misfit_of(tuned, model, fitted)}};
  }
  tune["price"] = {{"built_in", price_of_choices(tuned, built_in)}, {"tuned", price_of_choices(tuned, model)}};
  tune["file"] = to_toml(tuned.file);
  json["rows"] = Json::array();
  for (const TuneRow& each : tuned.rows) {
    Json row = row_of(each.item, each.algorithm);
    row["far"] = each.far;
    row["fitted"] = each.is_fitted;
    row["measured_ns"] = each.ns;
    row["built_in_ns"] = cost_of(each.parts, built_in);
    row["tuned_ns"] = cost_of(each.parts, model);
    json["rows"].push_back(std::move(row));
  }
  return json;
}

std::string to_text(const Json& report) {
  const auto hosts = report.at("hosts").get<std::uint64_t>();
  const std::string where =
      fmt::format("{} ranks on {}; backends {}; cost model {}\n\n", report.at("ranks").get<std::uint64_t>(),
                  hosts == 1 ? "one host" : fmt::format("{} hosts", hosts), report.at("backends").get<std::string>(),
                  report.at("cost_model").get<std::string>());
  std::string text = wrap(where);
  text += report.contains("tune") ? tune_text(report) : bench_text(report);
  if (report.contains("others_cpu") && report.at("others_cpu").get<double>() >= bench::kDisturbedShare) {
    text += fmt::format("Disturbed: other programs had {:.0f}% of this host's cores meanwhile.\n",
                        100 * report.at("others_cpu").get<double>());
  }
  return text;
}

}  // namespace hawser::cli::coll
