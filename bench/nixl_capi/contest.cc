#include "contest.h"

#include <algorithm>
#include <cstdio>

#include "cli/bench/cores.h"
#include "cli/ceiling.h"
#include "library.h"

namespace nixl_bench {
namespace {

constexpr std::int64_t kNearNs = 300;

std::string placement() {
  const std::int64_t ns = hawser::cli::core_round_trip_ns();
  return ns == 0 ? "-" : ns < kNearNs ? "near" : "far";
}

/// Which memory of the machine a process gets decides up to a sixth of how fast the kernel copies to and from it, and
/// who begins first gets the worst. So where such copies are measured, each round has new processes, and another
/// library begins.
bool wants_new_memory(const Measurement& measurement) { return measurement.bound == Bound::kCopy; }

}  // namespace

Contest::Contest(const ContestOptions& options)
    : options_(options), cores_(hawser::cli::bench::bench_cores()), ceilings_(options.arena, cores_) {}

std::vector<RowResult> Contest::run(const std::vector<Measurement>& measurements) {
  std::vector<RowResult> all;
  for (const Measurement& one : measurements) {
    std::vector<RowResult> results = measure(one);
    std::move(results.begin(), results.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<RowResult> Contest::measure(const Measurement& measurement) {
  if (!(measurement.setting == setting_)) pairs_.clear();
  setting_ = measurement.setting;
  std::vector<RowResult> results;
  for (const Row& row : measurement.rows) results.push_back({.measurement = measurement, .row = row});
  const std::string before = placement();
  std::vector<const LibraryEntry*> order;
  for (const LibraryEntry& library : options_.libraries) order.push_back(&library);
  for (int round = 0; round < options_.repeat; ++round) {
    std::fprintf(stderr, "%s round %d\n", measurement.rows.front().id.c_str(), round + 1);
    for (const LibraryEntry* library : order) slice(*library, measurement, round == 0, results);
    if (options_.ceilings) ceiling_round(measurement, results);
    if (wants_new_memory(measurement)) {
      finish_all(measurement, results);
      pairs_.clear();
      std::rotate(order.begin(), order.begin() + 1, order.end());
    } else {
      std::reverse(order.begin(), order.end());
    }
  }
  finish_all(measurement, results);
  const std::string after = placement();
  for (RowResult& result : results) result.cores = before == after ? before : "changed";
  return results;
}

Pair& Contest::pair_of(const LibraryEntry& library, const Setting& setting) {
  std::unique_ptr<Pair>& pair = pairs_[library.name];
  if (!pair) pair = std::make_unique<Pair>(library, setting, options_.arena, cores_);
  return *pair;
}

void Contest::slice(const LibraryEntry& library, const Measurement& measurement, bool is_first,
                    std::vector<RowResult>& results) {
  if (!results.front().figures[library.name].error.empty()) return;
  try {
    const bool is_new = !pairs_.contains(library.name);
    Pair& pair = pair_of(library, measurement.setting);
    if (is_first || is_new) pair.prepare(measurement);
    const Timings timings = pair.slice(measurement, options_.seconds);
    for (RowResult& result : results) result.figures[library.name].rounds.push_back(timings.at(result.row.suffix));
    // Its threads must not run beside the next library's slice.
    if (measurement.setting.progress_thread) {
      pair.verify(measurement);
      pairs_.erase(library.name);
    }
  } catch (const std::exception& error) {
    note_failure(library, error.what(), results);
  }
}

void Contest::finish_all(const Measurement& measurement, std::vector<RowResult>& results) {
  for (const LibraryEntry& library : options_.libraries) finish(library, measurement, results);
}

void Contest::finish(const LibraryEntry& library, const Measurement& measurement, std::vector<RowResult>& results) {
  const auto found = pairs_.find(library.name);
  if (found == pairs_.end() || !results.front().figures[library.name].error.empty()) return;
  try {
    found->second->verify(measurement);
    found->second->clear();
  } catch (const std::exception& error) {
    note_failure(library, error.what(), results);
  }
}

void Contest::ceiling_round(const Measurement& measurement, std::vector<RowResult>& results) {
  ForeignMemory foreign;
  for (const auto& [name, pair] : pairs_) {
    if (pair) foreign = {.pid = pair->target_pid(), .base = pair->target_base()};
  }
  Measurement one = measurement;
  if (one.bound == Bound::kCopy && foreign.pid < 0) one.bound = Bound::kNone;
  for (const auto& [way, ns] : ceilings_.measure(one, foreign, options_.seconds / 2)) {
    for (RowResult& result : results) result.ceilings[way].push_back(ns);
  }
}

void Contest::note_failure(const LibraryEntry& library, const std::string& what, std::vector<RowResult>& results) {
  failed_ = true;
  pairs_.erase(library.name);
  for (RowResult& result : results) {
    std::fprintf(stderr, "nixl_capi_bench: %s, row %s: %s\n", library.name.c_str(), result.row.id.c_str(),
                 what.c_str());
    result.figures[library.name] = {.rounds = {}, .error = what};
  }
}

}  // namespace nixl_bench
