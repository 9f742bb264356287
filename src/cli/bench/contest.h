#pragma once

// Contest: a figure of Hawser against the best of several raw ways, in turn, round by round, with a look at the cores'
// placement before and after each round.

#include <functional>
#include <string>
#include <vector>

#include <hawser/time.h>

#include "cli/bench/figure.h"

namespace hawser::cli::bench {

/// Runs for about the given time and returns its figure in the row's unit.
using Slice = std::function<Result<double>(Duration)>;

struct Contender {
  std::string name = {};
  Slice run = {};
};

struct Contest {
  Better better = Better::kHigher;
  Contender subject = {};
  std::vector<Contender> ceilings = {};  ///< May be empty.
  bool placed = false;                   ///< Depends on the placement: rounds in which it changed do not count.
};

struct ContestOptions {
  std::size_t rounds = 5;
  Duration slice = std::chrono::milliseconds(30);
  std::function<std::int64_t()> probe = {};  ///< Round trip of a cache line, ns; 0: one core only, negative: not known.
};

/// One round's figures; a ceiling that was left out is 0.
struct Round {
  Placement placement = Placement::kUnknown;
  double subject = 0;
  std::vector<double> ceilings = {};
};

Placement placement_of(std::int64_t round_trip_ns);
/// Medians of the rounds of one placement.
Comparison compare(const std::vector<Round>& rounds, const Contest& contest, Placement placement);
/// Fills best, placements, discarded and core_round_trip_ns. The first bad status ends it.
Result<Figure> run_contest(const Contest& contest, const ContestOptions& options);

}  // namespace hawser::cli::bench
