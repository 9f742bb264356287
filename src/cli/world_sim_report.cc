#include "cli/world_sim_report.h"

#include <fmt/format.h>

#include "sim/batch.h"

namespace hawser::cli {
namespace {

Json cells_of(const WorldSimReport& report) {
  Json rows = Json::array();
  for (std::size_t fault = 0; fault < worldsim::kFaults; ++fault) {
    for (std::size_t moment = 0; moment < worldsim::kMoments; ++moment) {
      const auto one = static_cast<worldsim::Fault>(fault);
      const auto at = static_cast<worldsim::Moment>(moment);
      if (!worldsim::possible(report.mode, one)) continue;
      rows.push_back({{"fault", worldsim::to_string(one)},
                      {"phase", worldsim::to_string(at)},
                      {"count", report.batch.sum.coverage.count_of(one, at)}});
    }
  }
  return rows;
}

}  // namespace

Status verdict(const WorldSimReport& report) {
  const auto& failed = report.batch.failed;
  if (failed.empty()) return {};
  return Status(Code::kFailed, fmt::format("{} of {} seeds failed; seed {}: {}", failed.size(), report.batch.seeds,
                                           failed.front().seed, failed.front().failure))
      .with_advice(worldsim::replay_command(failed.front().seed, report.mode));
}

Json to_json(const WorldSimReport& report) {
  const worldsim::Batch& batch = report.batch;
  Json json = document("sim");
  json["ok"] = batch.failed.empty();
  json["what"] = "world";
  json["mode"] = simulation::to_string(report.mode);
  json["first_seed"] = report.first;
  json["seeds"] = batch.seeds;
  json["hash"] = fmt::format("{:016x}", batch.hash);
  json["ranks"] = batch.sum.ranks;
  json["worlds"] = batch.sum.worlds;
  json["sparse_worlds"] = batch.sum.sparse;
  json["operations"] = batch.sum.deeds;
  json["good_operations"] = batch.sum.good;
  json["faults"] = batch.sum.faults;
  json["events"] = batch.sum.steps;
  json["failures"] = Json::array();
  for (const simulation::Failed& one : batch.failed) {
    json["failures"].push_back(
        {{"seed", one.seed}, {"failure", one.failure}, {"replay", worldsim::replay_command(one.seed, report.mode)}});
  }
  json["coverage"] = cells_of(report);
  return json;
}

std::string to_text(const WorldSimReport& report) {
  const std::string table = report.batch.seeds > 1 ? report.batch.sum.coverage.table(report.mode) : std::string();
  return table + worldsim::summary(report.batch, report.mode) + "\n";
}

}  // namespace hawser::cli
