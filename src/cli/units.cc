#include "cli/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace hawser::cli {

std::string short_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = std::abs(value - std::round(value)) < 0.005;
  return whole ? fmt::format("{:.0f} {}", value, kNames[unit]) : fmt::format("{:.2f} {}", value, kNames[unit]);
}

std::string short_duration(Duration duration) {
  const double ns = static_cast<double>(duration.count());
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.1f} µs", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.1f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

double rate(std::uint64_t bytes, std::int64_t ns) {
  return ns > 0 ? static_cast<double>(bytes) / static_cast<double>(ns) : 0;
}

std::string short_rate(double gb_per_s) { return gb_per_s > 0 ? fmt::format("{:.2f}", gb_per_s) : "-"; }

}  // namespace hawser::cli
