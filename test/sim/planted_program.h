#pragma once

// The program that plants one bug and asks whether its simulator finds it.
//
// usage: PROGRAM --list
//        PROGRAM NAME [SEEDS [FIRST]]
//        PROGRAM none SEEDS      the same build without a bug: no seed may fail
//
// Exit status 0: a seed within the bound failed, with the complaint that such a bug must bring; 1: it was not found, or
// for another reason.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/planted.h"
#include "sim/batch.h"

namespace hawser::simulation {

static_assert(base::kCanPlant, "this program is of the build with planted bugs");

inline constexpr std::uint64_t kPlantedSeedsMax = 2000;

struct PlantedBug {
  base::Planted bug;
  std::string_view name;
  sim::Mode mode;
  std::array<std::string_view, 8> complaints;  ///< One of these parts must be in what the judge says.
  std::uint64_t first = 1;                     ///< The first seed: a rare one begins not far from where it is found.
};

template <typename Run>
class PlantedProgram {
 public:
  using RunBatch = SeedBatch<Run> (*)(const SeedBatchOptions<Run>& options);

  PlantedProgram(std::string_view program, std::span<const PlantedBug> bugs, RunBatch run_batch)
      : program_(program), bugs_(bugs), run_batch_(run_batch) {}

  int main(int count, char** words) const {
    const std::string_view name = count > 1 ? words[1] : "";
    const std::uint64_t seeds = count > 2 ? std::strtoull(words[2], nullptr, 10) : 0;
    const std::uint64_t first = count > 3 ? std::strtoull(words[3], nullptr, 10) : 0;
    if (name == "--list") {
      for (const PlantedBug& bug : bugs_) fmt::print("{}\n", bug.name);
      return 0;
    }
    if (name == "none" && seeds > 0) return run_clean(seeds);
    const auto bug = std::ranges::find(bugs_, name, &PlantedBug::name);
    if (bug != bugs_.end()) return find(*bug, seeds > 0 ? seeds : kPlantedSeedsMax, first > 0 ? first : bug->first);
    fmt::print(stderr, "usage: {} --list | NAME [SEEDS [FIRST]] | none SEEDS\n", program_);
    return 2;
  }

 private:
  int find(const PlantedBug& bug, std::uint64_t seeds, std::uint64_t first) const {
    const auto until_found = [](std::uint64_t, const Run& run) { return run.ok; };
    const SeedBatch<Run> batch =
        run_batch_({.first = first, .count = seeds, .mode = bug.mode, .plant = bug.bug, .on_run = until_found});
    if (batch.failed.empty()) {
      fmt::print("FAILED: {} was not found in {} seeds of mode {} from {} on\n", bug.name, seeds, to_string(bug.mode),
                 first);
      return 1;
    }
    const auto& [seed, complaint] = batch.failed.front();
    fmt::print("{}: found by seed {} of mode {}: {}\n", bug.name, seed, to_string(bug.mode), complaint);
    const bool is_named = std::ranges::any_of(bug.complaints, [text = std::string_view(complaint)](auto part) {
      return !part.empty() && text.find(part) != std::string_view::npos;
    });
    if (!is_named) fmt::print("FAILED: that is not what such a bug should bring\n");
    return is_named ? 0 : 1;
  }

  int run_clean(std::uint64_t seeds) const {
    std::size_t failures = 0;
    for (const sim::Mode mode : {sim::Mode::kStream, sim::Mode::kMapped}) {
      const SeedBatch<Run> batch = run_batch_({.count = seeds, .mode = mode});
      for (const auto& [seed, failure] : batch.failed) fmt::print("FAILED: seed {}: {}\n", seed, failure);
      failures += batch.failed.size();
    }
    return failures > 0 ? 1 : 0;
  }

  std::string_view program_;
  std::span<const PlantedBug> bugs_;
  RunBatch run_batch_;
};

}  // namespace hawser::simulation
