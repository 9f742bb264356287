// sim_seeds: runs seeds of the agents' simulator; see seed_program.h.

#include "seed_program.h"
#include "sim/batch.h"

int main(int count, char** words) {
  using namespace hawser::simulation;
  return SeedProgram<Run>(
             {.program = "sim_seeds", .run_batch = run_batch, .replay_command = replay_command, .summary = summary})
      .main(count, words);
}
