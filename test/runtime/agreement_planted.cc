// Whether the simulation of agreements finds bugs that are put in on purpose: each of them in at most so many seeds.

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/planted.h"
#include "runtime/agreement_simulation.h"

namespace {

using hawser::base::Planted;

struct Bug {
  Planted bug;
  const char* name;
  std::uint64_t seeds;
};

constexpr Bug kBugs[] = {
    {Planted::kForgetsAccepted, "forgets_accepted", 1}, {Planted::kIgnoresBallot, "ignores_ballot", 1},
    {Planted::kProposesEarly, "proposes_early", 100},   {Planted::kDecidesEarly, "decides_early", 5000},
    {Planted::kDecidesAlone, "decides_alone", 1},       {Planted::kKeepsDecision, "keeps_decision", 5000},
    {Planted::kHearsTheDead, "hears_the_dead", 20'000}};

/// Whether anything complains.
bool find(const Bug& bug) {
  const hawser::base::PlantedScope planted(bug.bug);
  std::string complaint = hawser::runtime::run_lost_acceptance();
  for (const hawser::runtime::LonelyLeader& leader : hawser::runtime::kLonelyLeaders) {
    const bool is_meant = bug.bug == Planted::kDecidesAlone || bug.bug == Planted::kNone;
    if (is_meant && complaint.empty()) complaint = hawser::runtime::run_lonely_leader(leader);
  }
  std::uint64_t seed = 0;
  while (complaint.empty() && seed < bug.seeds) complaint = hawser::runtime::run_agreement_seed(++seed);
  std::printf("%s: seed %llu: %s\n", bug.name, static_cast<unsigned long long>(seed),
              complaint.empty() ? "nothing is wrong" : complaint.c_str());
  return !complaint.empty();
}

}  // namespace

int main() {
  bool all = true;
  for (const Bug& bug : kBugs) all = find(bug) && all;
  return all && !find({Planted::kNone, "none", 1000}) ? 0 : 1;
}
