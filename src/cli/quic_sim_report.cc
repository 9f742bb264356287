#include "cli/quic_sim_report.h"

#include <fmt/format.h>

namespace hawser::cli {
namespace {

constexpr sim::Mode kAnyMode = sim::Mode::kStream;

Json cells_of(const QuicSimReport& report) {
  Json rows = Json::array();
  for (std::size_t fault = 0; fault < quicsim::kFaults; ++fault) {
    for (std::size_t moment = 0; moment < quicsim::kMoments; ++moment) {
      const auto one = static_cast<quicsim::Fault>(fault);
      const auto at = static_cast<quicsim::Moment>(moment);
      if (!quicsim::possible(one, at)) continue;
      rows.push_back({{"fault", quicsim::to_string(one)},
                      {"phase", quicsim::to_string(at)},
                      {"count", report.batch.sum.coverage.count_of(one, at)}});
    }
  }
  return rows;
}

}  // namespace

Status verdict(const QuicSimReport& report) {
  const auto& failed = report.batch.failed;
  if (failed.empty()) return {};
  return Status(Code::kFailed, fmt::format("{} of {} seeds failed; seed {}: {}", failed.size(), report.batch.seeds,
                                           failed.front().seed, failed.front().failure))
      .with_advice(quicsim::replay_command(failed.front().seed, kAnyMode));
}

Json to_json(const QuicSimReport& report) {
  const quicsim::Batch& batch = report.batch;
  Json json = document("sim");
  json["ok"] = batch.failed.empty();
  json["what"] = "quic";
  json["first_seed"] = report.first;
  json["seeds"] = batch.seeds;
  json["hash"] = fmt::format("{:016x}", batch.hash);
  json["connections"] = batch.sum.connections;
  json["streams"] = batch.sum.streams;
  json["bytes"] = batch.sum.bytes;
  json["faults"] = batch.sum.faults;
  json["events"] = batch.sum.steps;
  json["failures"] = Json::array();
  for (const simulation::Failed& one : batch.failed) {
    json["failures"].push_back(
        {{"seed", one.seed}, {"failure", one.failure}, {"replay", quicsim::replay_command(one.seed, kAnyMode)}});
  }
  json["coverage"] = cells_of(report);
  return json;
}

std::string to_text(const QuicSimReport& report) {
  const std::string table = report.batch.seeds > 1 ? report.batch.sum.coverage.table(kAnyMode) : std::string();
  return table + quicsim::summary(report.batch, kAnyMode) + "\n";
}

}  // namespace hawser::cli
