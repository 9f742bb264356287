// planted_worlds: plants one bug in worlds and asks whether their simulator finds it.
//
// usage: planted_worlds --list
//        planted_worlds NAME [SEEDS [FIRST]]
//        planted_worlds none SEEDS      the same build without a bug: no seed may fail
//
// Exit status 0: a seed within the bound failed, with the complaint that such a bug must bring; 1: it was not found, or
// for another reason.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "planted_worlds_table.h"
#include "sim/batch.h"
#include "worldsim/batch.h"

namespace {

using namespace hawser;

static_assert(base::kCanPlant, "this program is of the build with planted bugs");

int find(const worldsim::PlantedBug& bug, std::uint64_t seeds, std::uint64_t first) {
  std::string complaint;
  std::uint64_t found = 0;
  const auto look = [&](std::uint64_t seed, const worldsim::Run& run) {
    if (run.ok) return true;
    complaint = run.failure;
    found = seed;
    return false;
  };
  worldsim::run_batch({.first = first, .count = seeds, .mode = bug.mode, .plant = bug.bug, .on_run = look});
  if (found == 0) {
    fmt::print("FAILED: {} was not found in {} seeds of mode {} from {} on\n", bug.name, seeds,
               simulation::to_string(bug.mode), first);
    return 1;
  }
  fmt::print("{}: found by seed {} of mode {}: {}\n", bug.name, found, simulation::to_string(bug.mode), complaint);
  const bool named = std::any_of(bug.complaints.begin(), bug.complaints.end(), [&](std::string_view part) {
    return !part.empty() && complaint.find(part) != std::string::npos;
  });
  if (!named) fmt::print("FAILED: that is not what such a bug should bring\n");
  return named ? 0 : 1;
}

int run_clean(std::uint64_t seeds) {
  for (const sim::Mode mode : {sim::Mode::kStream, sim::Mode::kMapped}) {
    const worldsim::Batch batch = worldsim::run_batch({.first = 1, .count = seeds, .mode = mode});
    for (const worldsim::Failed& one : batch.failed) fmt::print("FAILED: seed {}: {}\n", one.seed, one.failure);
    if (!batch.failed.empty()) return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view name = count > 1 ? words[1] : "";
  const std::uint64_t seeds = count > 2 ? std::strtoull(words[2], nullptr, 10) : 0;
  const std::uint64_t first = count > 3 ? std::strtoull(words[3], nullptr, 10) : 0;
  if (name == "--list") {
    for (const auto& bug : worldsim::kPlantedBugs) fmt::print("{}\n", bug.name);
    return 0;
  }
  if (name == "none" && seeds > 0) return run_clean(seeds);
  for (const auto& bug : worldsim::kPlantedBugs) {
    if (bug.name == name) {
      return find(bug, seeds > 0 ? seeds : worldsim::kPlantedSeedsMax, first > 0 ? first : bug.first);
    }
  }
  fmt::print(stderr, "usage: planted_worlds --list | NAME [SEEDS [FIRST]] | none SEEDS\n");
  return 2;
}
