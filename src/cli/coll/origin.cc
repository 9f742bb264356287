#include "cli/coll/origin.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shown.h"
#include "base/try.h"
#include "runtime/cost_file.h"

namespace hawser::cli::coll {
namespace {

using schedule::CostField;
using schedule::kCostFields;

/// "far_message_ns" as "message".
std::string short_name(std::string_view name) {
  constexpr std::string_view kFar = "far_", kUnit = "_ns";
  if (name.starts_with(kFar)) name.remove_prefix(kFar.size());
  name.remove_suffix(kUnit.size());
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string line_of(const schedule::CostModel& model, bool far) {
  std::string text;
  for (const CostField& field : kCostFields) {
    if (field.is_far != far) continue;
    text += fmt::format("{} {} {:.6g}", text.empty() ? "" : ",", short_name(field.name), model.*field.value);
  }
  return fmt::format("  {} hosts, ns:{}\n", far ? "between" : "within", text);
}

std::string measured_on(const runtime::CostFile& file) {
  std::string text = file.host.empty() ? "" : fmt::format(" on {}", base::shown(file.host));
  if (!file.measured.empty()) text += fmt::format(" at {}", base::shown(file.measured));
  return text;
}

}  // namespace

Result<CostOrigin> cost_origin(const std::string& path) {
  if (path.empty()) return CostOrigin();
  HAWSER_TRY_ASSIGN(const runtime::CostFile file, runtime::read_cost_file(path));
  std::string what = "measured";
  if (!file.has(true)) what += " within hosts, and built in between them";
  if (!file.has(false)) what += " between hosts, and built in within them";
  return CostOrigin{.model = file.model(),
                    .from = fmt::format("{} ({}{})", what, base::shown(path), measured_on(file))};
}

Json to_json(const CostOrigin& costs) {
  Json json;
  json["from"] = costs.from;
  for (const CostField& field : kCostFields) json[std::string(field.name)] = costs.model.*field.value;
  return json;
}

std::string to_text(const CostOrigin& costs) {
  return fmt::format("Cost model: {}\n{}{}", costs.from, line_of(costs.model, false), line_of(costs.model, true));
}

}  // namespace hawser::cli::coll
