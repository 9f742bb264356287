#include "cli/collectives_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/table.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

using What = schedule::Operation;

constexpr std::uint64_t kElement = 4;
constexpr std::size_t kOthersMax = 3;  ///< In a line of text.

schedule::Call call_of(What operation, std::uint32_t ranks, std::uint32_t hosts, std::uint64_t bytes) {
  schedule::Call call{.operation = operation, .size = ranks, .element_bytes = kElement};
  const std::uint64_t count = (bytes + kElement - 1) / kElement;
  switch (operation) {
    case What::kBarrier:
      break;
    case What::kAllGather:
    case What::kReduceScatter:
    case What::kGather:
    case What::kScatter:
    case What::kAllToAll:
      call.counts.assign(ranks, (count + ranks - 1) / ranks);
      call.in_counts = call.counts;
      break;
    default:
      call.count = count;
  }
  call.may_be_mapped = call.may_use_boards = hosts == 1;
  const std::uint32_t of_a_host = (ranks + hosts - 1) / hosts;
  for (std::uint32_t rank = 0; hosts > 1 && rank < ranks; ++rank) call.hosts.push_back(rank / of_a_host);
  return call;
}

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
                                     std::optional<What> operation, bool reproducible) {
  CollectivesReport report{.ranks = ranks, .hosts = hosts, .reproducible = reproducible};
  for (int number = 0; number <= static_cast<int>(What::kExclusiveScan); ++number) {
    const auto each = static_cast<What>(number);
    if (operation && *operation != each) continue;
    for (const std::uint64_t size : bytes) {
      const bool is_empty = each == What::kBarrier;
      schedule::Call call = call_of(each, ranks, hosts, size);
      call.reproducible = reproducible;
      report.rows.push_back(
          {.operation = each, .bytes = is_empty ? 0 : size, .choices = schedule::choices(call, schedule::CostModel())});
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
  const schedule::CostModel model;
  json["model"] = {
      {"message_ns", model.message_ns},     {"byte_ns", model.byte_ns},   {"combined_byte_ns", model.combined_byte_ns},
      {"read_byte_ns", model.read_byte_ns}, {"board_ns", model.board_ns}, {"far_message_ns", model.far_message_ns},
      {"far_byte_ns", model.far_byte_ns}};
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
  text += table.to_string();
  if (report.hosts == 1) {
    text += "\nMapped: where the buffers lie in memory of World.empty. ";
    text += "Boards: once all ranks see all boards.\n";
  }
  return text;
}

}  // namespace hawser::cli
