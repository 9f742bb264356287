#include "cli/bench/figure.h"

#include <fmt/format.h>

namespace hawser::cli::bench {

std::string to_string(Placement placement) {
  switch (placement) {
    case Placement::kNear:
      return "near";
    case Placement::kFar:
      return "far";
    case Placement::kChanged:
      return "changed";
    case Placement::kOneCpu:
      return "one cpu";
    case Placement::kUnknown:
      break;
  }
  return "-";
}

Target ratio_at_least(double bound) { return {Target::Kind::kRatioMin, bound}; }
Target ratio_at_most(double bound) { return {Target::Kind::kRatioMax, bound}; }
Target value_at_most(double bound) { return {Target::Kind::kValueMax, bound}; }
Target value_below(double bound) { return {Target::Kind::kValueBelow, bound}; }

std::optional<bool> is_met(const Row& row, const Figure& figure) {
  const Comparison& best = figure.best;
  switch (row.target.kind) {
    case Target::Kind::kNone:
      break;
    case Target::Kind::kRatioMin:
      return best.ratio >= row.target.bound;
    case Target::Kind::kRatioMax:
      return best.ratio > 0 && best.ratio <= row.target.bound;
    case Target::Kind::kValueMax:
      return best.value <= row.target.bound;
    case Target::Kind::kValueBelow:
      return best.value < row.target.bound;
  }
  return std::nullopt;
}

std::string to_string(const Target& target, const std::string& unit) {
  switch (target.kind) {
    case Target::Kind::kNone:
      break;
    case Target::Kind::kRatioMin:
      return fmt::format("≥ {:g} ×", target.bound);
    case Target::Kind::kRatioMax:
      return fmt::format("≤ {:g} ×", target.bound);
    case Target::Kind::kValueMax:
      return fmt::format("≤ {:g} {}", target.bound, unit);
    case Target::Kind::kValueBelow:
      return fmt::format("< {:g} {}", target.bound, unit);
  }
  return "-";
}

}  // namespace hawser::cli::bench
