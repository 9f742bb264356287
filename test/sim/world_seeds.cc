// world_seeds: runs seeds of simulated worlds; see seed_program.h.

#include "seed_program.h"
#include "worldsim/batch.h"

int main(int count, char** words) {
  using namespace hawser::worldsim;
  return hawser::simulation::SeedProgram<Run>(
             {.program = "world_seeds", .run_batch = run_batch, .replay_command = replay_command, .summary = summary})
      .main(count, words);
}
