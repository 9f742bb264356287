// world_seeds: runs seeds of simulated worlds; what ctest runs as sim.world_*.
//
// usage: world_seeds --mode stream|mapped --first A --count N [--twice] [--cover] [--trace]
//
// --twice runs each seed two times and compares; --cover fails unless every fault met every moment. Exit status 1: a
// seed failed, or a cell stayed empty.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sim/batch.h"
#include "worldsim/batch.h"

namespace {

using namespace hawser;

struct Arguments {
  worldsim::BatchOptions batch;
  bool cover = false;
};

void print_trace(Instant at, std::string_view line) {
  fmt::print("{:.6f} {}\n", static_cast<double>(at.ns()) / 1e9, line);
}

int run(Arguments& arguments) {
  worldsim::BatchOptions& options = arguments.batch;
  options.on_run = [&options](std::uint64_t seed, const worldsim::Run& run) {
    if (!run.ok) {
      fmt::print("FAILED: {} seed {}: {}\n  replay: {}\n", simulation::to_string(options.mode), seed, run.failure,
                 worldsim::replay_command(seed, options.mode));
      std::fflush(stdout);
    }
    return true;
  };
  const worldsim::Batch batch = worldsim::run_batch(options);
  fmt::print("{}{}\n", batch.coverage.table(options.mode), worldsim::summary(batch, options.mode));
  const std::size_t empty = batch.coverage.empty_cells(options.mode);
  if (arguments.cover && empty > 0) fmt::print("FAILED: {} pairs of fault and moment were never met\n", empty);
  return !batch.failed.empty() || (arguments.cover && empty > 0) ? 1 : 0;
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
    fmt::print(stderr, "usage: world_seeds --mode stream|mapped --first A --count N [--twice] [--cover] [--trace]\n");
    return 2;
  }
  return run(arguments);
}
