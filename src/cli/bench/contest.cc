#include "cli/bench/contest.h"

#include <algorithm>
#include <array>

#include "base/try.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {
namespace {

constexpr std::int64_t kNearMax = 300;   // ns; two cores on one last-level cache need 100-200, others 500-700
constexpr std::size_t kAttempts = 3;     // rounds tried for each that should count
constexpr double kHopeless = 0.8;        // raw ways that reach less of the best are not run again
constexpr std::size_t kTrialRounds = 2;  // rounds in which all raw ways run

bool is_better(Better better, double a, double b) { return better == Better::kHigher ? a > b : a < b; }

// Which raw ways are worth running again, by what they reached so far.
std::vector<bool> worth_running(const std::vector<Round>& rounds, const Contest& contest) {
  const std::size_t count = contest.ceilings.size();
  std::vector<bool> worth(count, true);
  if (rounds.size() < kTrialRounds) return worth;
  std::vector<double> best(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (const Round& round : rounds) {
      const double figure = round.ceilings[i];
      if (figure > 0 && (best[i] == 0 || is_better(contest.better, figure, best[i]))) best[i] = figure;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      const double share = contest.better == Better::kHigher ? best[i] / best[j] : best[j] / best[i];
      if (share < kHopeless) worth[i] = false;
    }
  }
  return worth;
}

// The subject takes another place among the raw ways in each round, so that none profits from what ran before it.
Result<Round> run_round(const Contest& contest, const std::vector<bool>& worth, std::size_t number, Duration slice) {
  Round round;
  round.ceilings.assign(contest.ceilings.size(), 0);
  const std::size_t places = contest.ceilings.size() + 1;
  for (std::size_t i = 0; i < places; ++i) {
    const std::size_t place = (i + number) % places;
    if (place == contest.ceilings.size()) {
      HAWSER_TRY_ASSIGN(round.subject, contest.subject.run(slice));
    } else if (worth[place]) {
      HAWSER_TRY_ASSIGN(round.ceilings[place], contest.ceilings[place].run(slice));
    }
  }
  return round;
}

}  // namespace

Placement placement_of(std::int64_t round_trip_ns) {
  if (round_trip_ns < 0) return Placement::kUnknown;
  if (round_trip_ns == 0) return Placement::kOneCpu;
  return round_trip_ns < kNearMax ? Placement::kNear : Placement::kFar;
}

Comparison compare(const std::vector<Round>& rounds, const Contest& contest, Placement placement) {
  std::vector<Round> chosen;
  std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(chosen),
               [&](const Round& round) { return round.placement == placement; });
  Comparison result{.placement = placement, .rounds = chosen.size()};
  std::vector<double> values;
  for (const Round& round : chosen) values.push_back(round.subject);
  result.value = median_of(values);
  for (std::size_t i = 0; i < contest.ceilings.size(); ++i) {
    std::vector<double> figures, ratios;
    for (const Round& round : chosen) {
      if (round.ceilings[i] <= 0) continue;
      figures.push_back(round.ceilings[i]);
      ratios.push_back(round.subject / round.ceilings[i]);
    }
    const double ceiling = median_of(figures);
    if (ceiling > 0 && (result.ceiling == 0 || is_better(contest.better, ceiling, result.ceiling))) {
      result.ceiling = ceiling;
      result.ceiling_how = contest.ceilings[i].name;
      result.ratio = median_of(ratios);
    }
  }
  return result;
}

Result<Figure> run_contest(const Contest& contest, const ContestOptions& options) {
  Figure figure;
  std::vector<Round> rounds;
  std::vector<std::int64_t> probes;
  std::size_t counted = 0;
  for (std::size_t i = 0; counted < options.rounds && i < kAttempts * options.rounds; ++i) {
    const std::int64_t before = options.probe();
    HAWSER_TRY_ASSIGN(Round round, run_round(contest, worth_running(rounds, contest), i, options.slice));
    const std::int64_t after = options.probe();
    probes.insert(probes.end(), {before, after});
    const bool changed = placement_of(before) != placement_of(after);
    round.placement = changed ? Placement::kChanged : placement_of(before);
    if (changed) ++figure.discarded;
    if (!changed || !contest.placed) ++counted;
    rounds.push_back(std::move(round));
  }
  if (!contest.placed) {
    for (Round& round : rounds) round.placement = rounds.front().placement;
    figure.discarded = 0;
  }
  for (const Placement placement :
       {Placement::kNear, Placement::kFar, Placement::kOneCpu, Placement::kUnknown, Placement::kChanged}) {
    Comparison comparison = compare(rounds, contest, placement);
    if (comparison.rounds == 0) continue;
    // Rounds of changed placement stand for the row only when there are no others.
    const bool last_resort = placement == Placement::kChanged && !figure.placements.empty();
    if (comparison.rounds > figure.best.rounds && !last_resort) figure.best = comparison;
    if (!last_resort) figure.placements.push_back(std::move(comparison));
  }
  figure.core_round_trip_ns = median_of(std::move(probes));
  return figure;
}

}  // namespace hawser::cli::bench
