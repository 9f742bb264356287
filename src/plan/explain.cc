#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "plan/planner.h"

namespace hawser::plan {
namespace {

struct Scale {
  double factor;
  std::string_view unit;
};

/// Three digits of the largest unit that gives at least 1: "1.23 ms".
std::string scaled(double value, std::span<const Scale> scales) {
  const Scale* chosen = &scales.front();
  for (const Scale& scale : scales) {
    if (value >= scale.factor) chosen = &scale;
  }
  const double shown = value / chosen->factor;
  if (shown >= 100 || shown == std::floor(shown)) return base::format("{:.0f} {}", shown, chosen->unit);
  return base::format("{:.{}f} {}", shown, shown >= 10 ? 1 : 2, chosen->unit);
}

std::string time_text(double ns) {
  constexpr Scale kScales[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
  return scaled(ns, kScales);
}

std::string size_text(std::uint64_t bytes) {
  constexpr Scale kScales[] = {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}};
  return scaled(static_cast<double>(bytes), kScales);
}

std::string rate_text(double bytes, double ns) { return ns <= 0 ? "" : base::format("{:.2f} GB/s", bytes / ns); }

std::string remark(const Route& route, std::size_t index) {
  const RouteRow& row = route.rows[index];
  if (!row.usable) return std::string(row.refusal.message());
  std::string text = row.measured ? "measured" : "estimated";
  if (row.readiness != Readiness::kUp) text += ", opening included";
  if (row.chosen && route.request.strict_order) text += ", first in the given order";
  return text;
}

}  // namespace

std::string explain(const Route& route) {
  const Request& request = route.request;
  std::string text =
      base::format("{} {} {}: {} in {} piece{}\n", request.op == Operation::kWrite ? "write" : "read",
                   request.op == Operation::kWrite ? "to" : "from", route.peer.empty() ? "a peer" : route.peer,
                   size_text(request.bytes), request.pieces, request.pieces == 1 ? "" : "s");
  std::size_t width = 7;
  for (const RouteRow& row : route.rows) width = std::max(width, row.backend.size());
  text += base::format("  {:<{}}  {:<10}  {:>9}  {:>11}  {}\n", "backend", width, "path", "expected", "rate", "why");
  for (std::size_t i = 0; i < route.rows.size(); ++i) {
    const RouteRow& row = route.rows[i];
    const std::string time = row.usable ? time_text(row.predicted_ns) : "-";
    const std::string rate = row.usable ? rate_text(static_cast<double>(request.bytes), row.predicted_ns) : "-";
    text += base::format("{} {:<{}}  {:<10}  {:>9}  {:>11}  {}\n", row.chosen ? "*" : " ", row.backend, width,
                         to_string(row.readiness), time, rate, remark(route, i));
  }
  if (route.order.empty()) text += "  no path can be used\n";
  return text;
}

}  // namespace hawser::plan
