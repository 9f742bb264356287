#pragma once

// The program that runs seeds of one of the simulators; what ctest runs under the label `sim`.
//
// usage: PROGRAM --mode stream|mapped --first A --count N [--twice] [--cover] [--trace]
//        PROGRAM --list FILE
//
// --twice runs each seed two times and compares; --cover fails unless every fault met every moment; --list runs the
// seeds of a file, a line "MODE SEED  what it found" each. Exit status 1: a seed failed, or a cell stayed empty.

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "sim/batch.h"

namespace hawser::simulation {

template <typename Run>
class SeedProgram {
 public:
  struct Simulator {
    std::string_view program;
    SeedBatch<Run> (*run_batch)(const SeedBatchOptions<Run>& options) = nullptr;
    std::string (*replay_command)(std::uint64_t seed, sim::Mode mode) = nullptr;
    std::string (*summary)(const SeedBatch<Run>& batch, sim::Mode mode) = nullptr;
  };
  explicit SeedProgram(const Simulator& simulator) : simulator_(simulator) {}

  int main(int count, char** words) {
    if (!parse(count, words)) {
      fmt::print(stderr,
                 "usage: {0} --mode stream|mapped --first A --count N [--twice] [--cover] [--trace]\n"
                 "       {0} --list FILE\n",
                 simulator_.program);
      return 2;
    }
    return list_.empty() ? run_range() : run_list();
  }

 private:
  bool parse(int count, char** words) {
    for (int i = 1; i < count; ++i) {
      const std::string_view word = words[i];
      const bool has_value = i + 1 < count;
      if (word == "--twice") {
        options_.twice = true;
      } else if (word == "--cover") {
        covers_ = true;
      } else if (word == "--trace") {
        options_.trace = [](Instant at, std::string_view line) {
          fmt::print("{:.6f} {}\n", static_cast<double>(at.ns()) / 1e9, line);
        };
      } else if (word == "--first" && has_value) {
        options_.first = std::strtoull(words[++i], nullptr, 10);
      } else if (word == "--count" && has_value) {
        options_.count = std::strtoull(words[++i], nullptr, 10);
      } else if (word == "--list" && has_value) {
        list_ = words[++i];
      } else if (word == "--mode" && has_value) {
        const Result<sim::Mode> mode = mode_of(words[++i]);
        if (!mode) return false;
        options_.mode = *mode;
      } else {
        return false;
      }
    }
    return options_.count > 0;
  }

  /// Tells of those that fail as they come.
  SeedBatch<Run> run(SeedBatchOptions<Run> options) const {
    options.on_run = [&](std::uint64_t seed, const Run& run) {
      if (run.ok) return true;
      fmt::print("FAILED: {} seed {}: {}\n  replay: {}\n", to_string(options.mode), seed, run.failure,
                 simulator_.replay_command(seed, options.mode));
      std::fflush(stdout);
      return true;
    };
    return simulator_.run_batch(options);
  }

  int run_range() const {
    const SeedBatch<Run> batch = run(options_);
    const auto& coverage = batch.sum.coverage;
    fmt::print("{}{}\n", coverage.table(options_.mode), simulator_.summary(batch, options_.mode));
    const std::size_t empty = covers_ ? coverage.empty_cells(options_.mode) : 0;
    if (empty > 0) fmt::print("FAILED: {} pairs of fault and moment were never met\n", empty);
    return !batch.failed.empty() || empty > 0 ? 1 : 0;
  }

  int run_list() const {
    std::ifstream file(list_);
    std::size_t failures = 0, count = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line.front() == '#') continue;
      std::istringstream words(line);
      std::string mode_name;
      std::uint64_t seed = 0;
      words >> mode_name >> seed;
      const Result<sim::Mode> mode = mode_of(mode_name);
      if (!mode || !words) {
        fmt::print("{}: cannot read '{}'\n", list_, line);
        return 2;
      }
      failures += run({.first = seed, .count = 1, .mode = *mode}).failed.size();
      ++count;
    }
    fmt::print("{} seeds of {}, {} failed\n", count, list_, failures);
    return failures > 0 || count == 0 ? 1 : 0;
  }

  Simulator simulator_;
  SeedBatchOptions<Run> options_;
  bool covers_ = false;
  std::string list_;
};

}  // namespace hawser::simulation
