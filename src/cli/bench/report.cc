#include "cli/bench/report.h"

#include <fmt/format.h>
#include <hawser/version.h>

#include <algorithm>

#include "base/copy.h"
#include "base/try.h"
#include "cli/bench/cores.h"
#include "cli/bench/disturbance.h"
#include "cli/bench/ucx.h"
#include "cli/command.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/wrap.h"

namespace hawser::cli::bench {
namespace {

// Three digits that count.
std::string short_number(double value) {
  if (value == 0) return "0";
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return value >= 0.1 ? fmt::format("{:.2f}", value) : fmt::format("{:.3f}", value);
}

std::string time_cell(std::uint64_t ns) {
  return ns == 0 ? "" : short_duration(Duration(static_cast<std::int64_t>(ns)));
}

std::string met_cell(const Outcome& outcome) {
  if (outcome.status.code() == Code::kUnsupported) return "skipped";
  if (!outcome.status.ok()) return "FAILED";
  const auto met = is_met(*outcome.row, outcome.figure);
  return !met ? "" : *met ? "yes" : "no";
}

std::string number_or_empty(const std::optional<double>& value) { return value ? short_number(*value) : ""; }

std::vector<std::string> cells(const Outcome& outcome, const Comparison& comparison, bool first) {
  const Row& row = *outcome.row;
  if (!outcome.status.ok()) return {row.id, "", "", "", "", to_string(row.target, row.unit), met_cell(outcome)};
  const Figure& figure = outcome.figure;
  return {first ? row.id : "",
          short_number(comparison.value),
          row.unit,
          comparison.ceiling > 0 ? short_number(comparison.ceiling) : "",
          comparison.ceiling > 0 ? fmt::format("{:.2f}", comparison.ratio) : "",
          first ? to_string(row.target, row.unit) : "",
          first ? met_cell(outcome) : "",
          first ? number_or_empty(figure.cold) : "",
          first ? time_cell(figure.p50_ns) : "",
          first ? time_cell(figure.p99_ns) : "",
          first ? number_or_empty(figure.cpu_s_per_gb) : "",
          first && figure.verified_bytes > 0 ? short_size(figure.verified_bytes) : "",
          to_string(comparison.placement)};
}

Json comparison_json(const Comparison& comparison) {
  Json json{{"placement", to_string(comparison.placement)}, {"value", comparison.value}, {"rounds", comparison.rounds}};
  if (comparison.ceiling > 0) {
    json["ceiling"] = comparison.ceiling;
    json["ceiling_how"] = comparison.ceiling_how;
    json["ratio"] = comparison.ratio;
  }
  return json;
}

Json target_json(const Row& row) {
  constexpr const char* kKinds[] = {"none", "ratio_min", "ratio_max", "value_max", "value_below"};
  return {{"kind", kKinds[static_cast<int>(row.target.kind)]}, {"bound", row.target.bound}};
}

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

void put_figure(Json& json, const Row& row, const Figure& figure) {
  json.update(comparison_json(figure.best));
  put(json, "met", is_met(row, figure));
  if (figure.p50_ns > 0) json["p50_ns"] = figure.p50_ns;
  if (figure.p99_ns > 0) json["p99_ns"] = figure.p99_ns;
  put(json, "cold", figure.cold);
  put(json, "cpu_s_per_gb", figure.cpu_s_per_gb);
  put(json, "ceiling_cpu_s_per_gb", figure.ceiling_cpu_s_per_gb);
  json["verified_bytes"] = figure.verified_bytes;
  json["core_round_trip_ns"] = figure.core_round_trip_ns;
  json["discarded_rounds"] = figure.discarded;
  for (const Comparison& placement : figure.placements) json["placements"].push_back(comparison_json(placement));
  if (!figure.note.empty()) json["note"] = figure.note;
}

Json row_json(const Row& row) {
  return {{"id", row.id},
          {"what", row.what},
          {"unit", row.unit},
          {"better", row.better == Better::kHigher ? "higher" : "lower"},
          {"target", target_json(row)}};
}

std::string failures_text(const std::vector<Outcome>& outcomes) {
  std::string text;
  std::vector<std::string> skipped;
  for (const Outcome& outcome : outcomes) {
    if (outcome.status.code() == Code::kUnsupported) {
      const std::string why = outcome.status.to_string();
      if (std::find(skipped.begin(), skipped.end(), why) == skipped.end()) skipped.push_back(why);
    } else if (!outcome.status.ok()) {
      text += fmt::format("{}: {}\n", outcome.row->id, outcome.status.to_string());
    } else if (!outcome.figure.note.empty()) {
      text += fmt::format("{}: {}\n", outcome.row->id, outcome.figure.note);
    }
  }
  for (const std::string& why : skipped) text += fmt::format("skipped: {}\n", why);
  return text;
}

bool is_disturbed(const Outcome& outcome) {
  return outcome.status.ok() && outcome.others.value_or(0) >= kDisturbedShare;
}

// Beside figures that other work on the machine has spoiled.
std::string disturbed_text(const std::vector<Outcome>& outcomes) {
  std::string rows;
  double most = 0;
  for (const Outcome& outcome : outcomes) {
    if (!is_disturbed(outcome)) continue;
    rows += (rows.empty() ? "" : ", ") + outcome.row->id;
    most = std::max(most, *outcome.others);
  }
  if (rows.empty()) return "";
  return fmt::format(
      "warning: other processes had up to {:.0f} % of the processors while these rows ran, so their figures may be "
      "wrong: "
      "{}\n",
      100 * most, rows);
}

std::string params_text(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params) text += fmt::format(" {}={}", name, value.empty() ? "\"\"" : value);
  return text;
}

}  // namespace

Result<Surroundings> look_around(const BenchOptions& options) {
  Surroundings found;
  found.version = version();
  found.copy_kernel = base::kernels().name;
  found.cores = bench_cores();
  HAWSER_TRY_ASSIGN(LoadedConfig config, configuration(options.config));
  tell_warnings(config);
  for (const ConfigValue& value : config.values) {
    if (value.origin != "default") found.changed.push_back(value);
  }
  HAWSER_TRY_ASSIGN(AgentOptions agent_options, bench_agent_options(options.config, {}, "bench-look", false));
  HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(agent_options)));
  found.backends = agent.backends();
  HAWSER_TRY_ASSIGN(const Region region, agent.allocate({.name = "look", .size = 4u << 20}));
  found.huge_pages = region.huge_pages();
  if (const auto tool = find_ucx()) found.ucx = tool->program;
  return found;
}

std::string surroundings_text(const Surroundings& found, const BenchOptions& options) {
  std::string text =
      fmt::format("hawser {}, copies by {}, cores {} and {}, {} pages, {} rounds of {}, arenas of {}\n", found.version,
                  found.copy_kernel, found.cores[0], found.cores[1], found.huge_pages ? "huge" : "4 KiB",
                  options.rounds, short_duration(options.slice), short_size(options.arena_bytes));
  for (const BackendReport& report : found.backends) {
    text += report.open ? fmt::format("  {}:{}\n", report.name, params_text(report.params))
                        : fmt::format("  {}: not open: {}\n", report.name, report.cause.to_string());
  }
  for (const ConfigValue& value : found.changed) {
    text += fmt::format("  not the default: {} = {} ({})\n", value.name, value.value, value.origin);
  }
  if (!found.ucx.empty()) text += fmt::format("  ucx_perftest: {}\n", found.ucx);
  return text;
}

std::string results_text(const std::vector<Outcome>& outcomes) {
  Table table({{"row", Align::kLeft},
               {"value", Align::kRight},
               {"unit", Align::kLeft},
               {"ceiling", Align::kRight},
               {"ratio", Align::kRight},
               {"target", Align::kLeft},
               {"met", Align::kLeft},
               {"cold", Align::kRight},
               {"p50", Align::kRight},
               {"p99", Align::kRight},
               {"cpu s/GB", Align::kRight},
               {"verified", Align::kRight},
               {"cores", Align::kLeft}});
  for (const Outcome& outcome : outcomes) {
    table.add(cells(outcome, outcome.figure.best, true));
    for (const Comparison& placement : outcome.figure.placements) {
      if (placement.placement != outcome.figure.best.placement) table.add(cells(outcome, placement, false));
    }
  }
  return table.to_string() + "\n" + failures_text(outcomes) + wrap(disturbed_text(outcomes));
}

Json results_json(const Surroundings& found, const BenchOptions& options, const std::vector<Outcome>& outcomes) {
  Json json = document("bench");
  json["version"] = found.version;
  json["copy_kernel"] = found.copy_kernel;
  json["cores"] = found.cores;
  json["huge_pages"] = found.huge_pages;
  json["rounds"] = options.rounds;
  json["slice_ns"] = options.slice.count();
  json["arena_bytes"] = options.arena_bytes;
  for (const BackendReport& report : found.backends) {
    Json backend{{"name", report.name}, {"open", report.open}, {"params", report.params}};
    if (!report.open) backend["error"] = cli::to_json(report.cause);
    json["backends"].push_back(std::move(backend));
  }
  json["not_default"] = Json::object();
  for (const ConfigValue& value : found.changed) json["not_default"][value.name] = value.value;
  json["ucx_perftest"] = found.ucx;
  json["ok"] = std::none_of(outcomes.begin(), outcomes.end(), is_failed);
  json["rows"] = Json::array();
  for (const Outcome& outcome : outcomes) {
    Json row = row_json(*outcome.row);
    row["state"] = outcome.status.ok() ? "run" : is_failed(outcome) ? "failed" : "skipped";
    put(row, "others_cpu", outcome.others);
    if (is_disturbed(outcome)) row["disturbed"] = true;
    if (outcome.status.ok()) {
      put_figure(row, *outcome.row, outcome.figure);
    } else {
      row["error"] = cli::to_json(outcome.status);
    }
    json["rows"].push_back(std::move(row));
  }
  return json;
}

std::string rows_text(const std::vector<Row>& rows) {
  Table table({{"row", Align::kLeft}, {"target", Align::kLeft}, {"what", Align::kLeft}});
  for (const Row& row : rows) table.add({row.id, to_string(row.target, row.unit), row.what});
  return table.to_string();
}

Json rows_json(const std::vector<Row>& rows) {
  Json json = document("bench.list");
  json["rows"] = Json::array();
  for (const Row& row : rows) json["rows"].push_back(row_json(row));
  return json;
}

}  // namespace hawser::cli::bench
