#pragma once

// A row of the bench, its target and its result.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <hawser/status.h>

namespace hawser::cli::bench {

class Bench;

/// Where the two processes' cores lie to each other; virtual machines move them about.
enum class Placement { kUnknown, kNear, kFar, kChanged, kOneCpu };
std::string to_string(Placement placement);

enum class Better { kHigher, kLower };

/// The value that a row should reach. It is reported only: no target fails a run.
struct Target {
  enum class Kind { kNone, kRatioMin, kRatioMax, kValueMax, kValueBelow };
  Kind kind = Kind::kNone;
  double bound = 0;
};
Target ratio_at_least(double bound);
Target ratio_at_most(double bound);
Target value_at_most(double bound);
Target value_below(double bound);

/// Medians over the rounds that were run in one placement.
struct Comparison {
  Placement placement = Placement::kUnknown;
  double value = 0;
  double ceiling = 0;            ///< 0: the row has none.
  double ratio = 0;              ///< value / ceiling, the median of the rounds' own ratios.
  std::string ceiling_how = {};  ///< Which of the raw ways was the best.
  std::size_t rounds = 0;
};

struct Figure {
  Comparison best = {};                     ///< In the placement with the most rounds.
  std::vector<Comparison> placements = {};  ///< Each that was seen.
  std::size_t discarded = 0;                ///< Rounds in which the placement changed.
  std::int64_t core_round_trip_ns = 0;      ///< Median of the probes.
  std::uint64_t p50_ns = 0, p99_ns = 0;     ///< For single operations; 0: not taken.
  std::optional<double> cold = {};          ///< The first pass, in the row's unit.
  std::uint64_t verified_bytes = 0;
  std::optional<double> cpu_s_per_gb = {};          ///< Both processes together.
  std::optional<double> ceiling_cpu_s_per_gb = {};  ///< As above, for the raw loop.
  std::string note = {};
};

struct Row {
  std::string id = {};    ///< Stable: other tools select and compare by it.
  std::string what = {};  ///< One line.
  std::string unit = {};  ///< "GB/s", "ns", "µs", "ms", "B", "%", "s/GB".
  Better better = Better::kHigher;
  Target target = {};
  std::function<Result<Figure>(Bench&)> run = {};
};

/// One row after its run.
struct Outcome {
  const Row* row = nullptr;
  Status status;                      ///< kUnsupported: skipped, and why. kCorrupt: bytes were wrong.
  Figure figure;                      ///< When the status is good.
  std::optional<double> others = {};  ///< The share of all cores that other processes had meanwhile, 0 to 1.
};

/// Not run to its end; a row that was skipped has not failed.
inline bool is_failed(const Outcome& outcome) {
  return !outcome.status.ok() && outcome.status.code() != Code::kUnsupported;
}

/// True where the target was met. Nothing when there is no target or no figure.
std::optional<bool> is_met(const Row& row, const Figure& figure);
/// "≥ 0.95", "≤ 35 ns".
std::string to_string(const Target& target, const std::string& unit);

}  // namespace hawser::cli::bench
