#include "cli/scale_report.h"

#include <fmt/format.h>

namespace hawser::cli {

Json to_json(const ScaleReport& report) {
  Json json = document("sim");
  json["ok"] = true;
  json["what"] = "scale";
  json["ranks"] = report.ranks;
  json["rows"] = Json::array();
  for (const worldsim::ScaleRow& row : report.rows) {
    json["rows"].push_back({{"operation", row.operation},
                            {"bytes", row.bytes},
                            {"algorithm", row.algorithm},
                            {"messages", row.messages},
                            {"time_ns", row.time_ns},
                            {"bound_ns", row.bound_ns},
                            {"ratio", row.ratio()}});
  }
  return json;
}

std::string to_text(const ScaleReport& report) {
  constexpr double kNsInUs = 1000;
  std::string text = fmt::format("{} ranks in virtual time; the bound is that of the alpha-beta model\n", report.ranks);
  text += fmt::format("{:<11} {:>11}  {:<14} {:>9} {:>14} {:>14} {:>7}\n", "operation", "bytes", "algorithm",
                      "messages", "time us", "bound us", "ratio");
  for (const worldsim::ScaleRow& row : report.rows) {
    text += fmt::format("{:<11} {:>11}  {:<14} {:>9} {:>14.1f} {:>14.1f} {:>7.2f}\n", row.operation, row.bytes,
                        row.algorithm, row.messages, row.time_ns / kNsInUs, row.bound_ns / kNsInUs, row.ratio());
  }
  return text;
}

}  // namespace hawser::cli
