// sim_seeds: runs seeds of the simulator; what ctest runs under the label `sim`.
//
// usage: sim_seeds --mode stream|mapped --first A --count N [--twice] [--cover] [--trace]
//        sim_seeds --list FILE
//
// --twice runs each seed two times and compares; --cover fails unless every fault met every phase; --list runs the
// seeds of a file, a line "MODE SEED  what it found" each. Exit status 1: a seed failed, or a cell stayed empty.

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "sim/batch.h"

namespace {

using namespace hawser;
using simulation::Batch;
using simulation::BatchOptions;

struct Arguments {
  BatchOptions batch;
  bool cover = false;
  std::string list;
};

void tell(std::uint64_t seed, sim::Mode mode, const simulation::Run& run) {
  if (run.ok) return;
  fmt::print("FAILED: {} seed {}: {}\n  replay: {}\n", simulation::to_string(mode), seed, run.failure,
             simulation::replay_command(seed, mode));
  std::fflush(stdout);
}

void print_trace(Instant at, std::string_view line) {
  fmt::print("{:.6f} {}\n", static_cast<double>(at.ns()) / 1e9, line);
}

int run_range(Arguments& arguments) {
  BatchOptions& options = arguments.batch;
  options.on_run = [&options](std::uint64_t seed, const simulation::Run& run) {
    tell(seed, options.mode, run);
    return true;
  };
  const Batch batch = simulation::run_batch(options);
  fmt::print(
      "{}{} seeds, {} failed; {} transfers ({} good), {} atomics ({} good), {} faults, {} lives, {} events, hash "
      "{:016x}\n",
      batch.coverage.table(options.mode), batch.seeds, batch.failed.size(), batch.transfers, batch.good_transfers,
      batch.atomics, batch.good_atomics, batch.faults, batch.lives, batch.steps, batch.hash);
  const std::size_t empty = batch.coverage.empty_cells(options.mode);
  if (arguments.cover && empty > 0) fmt::print("FAILED: {} pairs of fault and phase were never met\n", empty);
  return !batch.failed.empty() || (arguments.cover && empty > 0) ? 1 : 0;
}

int run_list(const Arguments& arguments) {
  std::ifstream file(arguments.list);
  std::string line;
  int failures = 0, count = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string mode_name;
    std::uint64_t seed = 0;
    words >> mode_name >> seed;
    const auto mode = simulation::mode_of(mode_name);
    if (!mode || !words) {
      fmt::print("{}: cannot read '{}'\n", arguments.list, line);
      return 2;
    }
    const simulation::Run run = simulation::run_seed({.seed = seed, .mode = *mode, .trace = {}});
    tell(seed, *mode, run);
    failures += run.ok ? 0 : 1;
    ++count;
  }
  fmt::print("{} seeds of {}, {} failed\n", count, arguments.list, failures);
  return failures > 0 || count == 0 ? 1 : 0;
}

bool parse(int count, char** words, Arguments& out) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--twice") {
      out.batch.twice = true;
    } else if (word == "--cover") {
      out.cover = true;
    } else if (word == "--trace") {
      out.batch.trace = print_trace;
    } else if (word == "--first" && has_value) {
      out.batch.first = std::strtoull(words[++i], nullptr, 10);
    } else if (word == "--count" && has_value) {
      out.batch.count = std::strtoull(words[++i], nullptr, 10);
    } else if (word == "--list" && has_value) {
      out.list = words[++i];
    } else if (word == "--mode" && has_value) {
      const auto mode = simulation::mode_of(words[++i]);
      if (!mode) return false;
      out.batch.mode = *mode;
    } else {
      return false;
    }
  }
  return out.batch.count > 0;
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  if (!parse(count, words, arguments)) {
    fmt::print(stderr,
               "usage: sim_seeds --mode stream|mapped --first A --count N [--twice] [--cover] [--trace]\n"
               "       sim_seeds --list FILE\n");
    return 2;
  }
  return arguments.list.empty() ? run_range(arguments) : run_list(arguments);
}
