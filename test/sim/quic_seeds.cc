// quic_seeds: runs seeds of simulated QUIC connections; see seed_program.h. The mode does not count. Exit status 77:
// ngtcp2 is not here.

#include "quicsim/batch.h"
#include "seed_program.h"

int main(int count, char** words) {
  using namespace hawser::quicsim;
  if (const hawser::Status ready = is_ready(); !ready.ok()) {
    fmt::print("skipped: {}\n", ready.to_string());
    return 77;
  }
  return hawser::simulation::SeedProgram<Run>(
             {.program = "quic_seeds", .run_batch = run_batch, .replay_command = replay_command, .summary = summary})
      .main(count, words);
}
