#include "cli/sim_report.h"

#include <fmt/format.h>

namespace hawser::cli {
namespace {

Json coverage_json(const SimReport& report) {
  Json rows = Json::array();
  for (std::size_t fault = 0; fault < simulation::kFaults; ++fault) {
    for (std::size_t step = 0; step < simulation::kSteps; ++step) {
      const auto one = static_cast<simulation::Fault>(fault);
      const auto at = static_cast<simulation::Step>(step);
      if (!simulation::possible(report.mode, one, at)) continue;
      rows.push_back({{"fault", simulation::to_string(one)},
                      {"phase", simulation::to_string(at)},
                      {"count", report.batch.sum.coverage.count_of(report.mode, one, at)}});
    }
  }
  return rows;
}

}  // namespace

Status verdict(const SimReport& report) {
  const auto& failed = report.batch.failed;
  if (failed.empty()) return {};
  return Status(Code::kFailed, fmt::format("{} of {} seeds failed; seed {}: {}", failed.size(), report.batch.seeds,
                                           failed.front().seed, failed.front().failure))
      .with_advice(simulation::replay_command(failed.front().seed, report.mode));
}

Json to_json(const SimReport& report) {
  const simulation::Batch& batch = report.batch;
  Json json = document("sim");
  json["ok"] = batch.failed.empty();
  json["mode"] = simulation::to_string(report.mode);
  json["first_seed"] = report.first;
  json["seeds"] = batch.seeds;
  json["hash"] = fmt::format("{:016x}", batch.hash);
  json["transfers"] = batch.sum.transfers;
  json["good_transfers"] = batch.sum.good_transfers;
  json["faults"] = batch.sum.faults;
  json["agents"] = batch.sum.lives;
  json["events"] = batch.sum.steps;
  json["failures"] = Json::array();
  for (const simulation::Failed& one : batch.failed) {
    json["failures"].push_back(
        {{"seed", one.seed}, {"failure", one.failure}, {"replay", simulation::replay_command(one.seed, report.mode)}});
  }
  json["coverage"] = coverage_json(report);
  return json;
}

std::string to_text(const SimReport& report) {
  const std::string table = report.batch.seeds > 1 ? report.batch.sum.coverage.table(report.mode) : std::string();
  return table + simulation::summary(report.batch, report.mode) + "\n";
}

}  // namespace hawser::cli
