#include "cli/collectives_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/coll/call.h"
#include "cli/table.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

using What = schedule::Operation;

constexpr std::size_t kOthersMax = 3;  ///< In a line of text.

std::string others_text(const std::vector<schedule::Choice>& choices) {
  std::string text;
  for (std::size_t i = 1; i < choices.size() && i <= kOthersMax; ++i) {
    if (i > 1) text += ", ";
    text += fmt::format("{} {:.1f}x", schedule::to_string(choices[i].algorithm),
                        choices[i].cost_ns / std::max(choices[0].cost_ns, 1.0));
  }
  return text;
}

}  // namespace

CollectivesReport collectives_report(std::uint32_t ranks, std::uint32_t hosts, std::span<const std::uint64_t> bytes,
                                     std::optional<What> operation, bool reproducible, const coll::CostOrigin& costs) {
  CollectivesReport report{.ranks = ranks, .hosts = hosts, .reproducible = reproducible, .costs = costs};
  const std::uint32_t of_a_host = (ranks + hosts - 1) / hosts;
  std::vector<std::uint32_t> host_of;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) host_of.push_back(rank / of_a_host);
  for (int number = 0; number <= static_cast<int>(What::kExclusiveScan); ++number) {
    const auto each = static_cast<What>(number);
    if (operation && *operation != each) continue;
    for (const std::uint64_t size : bytes) {
      const bool is_empty = each == What::kBarrier;
      schedule::Call call = coll::call_of(each, ranks, host_of, size);
      call.reproducible = reproducible;
      report.rows.push_back(
          {.operation = each, .bytes = is_empty ? 0 : size, .choices = schedule::choices(call, costs.model)});
      if (is_empty) break;
    }
  }
  return report;
}

Json to_json(const CollectivesReport& report) {
  Json json = document("collectives");
  json["ok"] = true;
  json["ranks"] = report.ranks;
  json["hosts"] = report.hosts;
  json["reproducible"] = report.reproducible;
  json["model"] = coll::to_json(report.costs);
  json["rows"] = Json::array();
  for (const CollectiveRow& row : report.rows) {
    Json choices = Json::array();
    for (const schedule::Choice& each : row.choices) {
      choices.push_back({{"algorithm", schedule::to_string(each.algorithm)}, {"cost_ns", each.cost_ns}});
    }
    json["rows"].push_back(
        {{"operation", schedule::to_string(row.operation)}, {"bytes", row.bytes}, {"choices", std::move(choices)}});
  }
  return json;
}

std::string to_text(const CollectivesReport& report) {
  Table table({{"operation"},
               {"bytes", Align::kRight},
               {"goes by"},
               {"cost", Align::kRight},
               {"could go by, at so many times the cost"}});
  for (const CollectiveRow& row : report.rows) {
    const schedule::Choice& best = row.choices.front();
    table.add({std::string(schedule::to_string(row.operation)), row.bytes == 0 ? "" : short_size(row.bytes),
               std::string(schedule::to_string(best.algorithm)),
               short_duration(Duration(static_cast<std::int64_t>(best.cost_ns))), others_text(row.choices)});
  }
  const std::string where = report.hosts == 1 ? "one host" : fmt::format("{} hosts", report.hosts);
  std::string text = fmt::format("{} ranks on {}, as the model has it{}\n\n", report.ranks, where,
                                 report.reproducible ? "; reproducible" : "");
  text += table.to_string() + "\n" + coll::to_text(report.costs);
  if (report.hosts < report.ranks) {  // Some share a host.
    text += "Mapped: where the buffers lie in memory of World.empty. ";
    text += "Boards: once all ranks see all boards.\n";
  }
  return text;
}

}  // namespace hawser::cli
