// planted_quic: plants one bug in QUIC connections; see planted_program.h. Exit status 77: ngtcp2 is not here.

#include "planted_program.h"
#include "planted_quic_table.h"
#include "quicsim/batch.h"

int main(int count, char** words) {
  using namespace hawser::quicsim;
  if (const hawser::Status ready = is_ready(); !ready.ok()) {
    fmt::print("skipped: {}\n", ready.to_string());
    return 77;
  }
  return hawser::simulation::PlantedProgram<Run>("planted_quic", kPlantedBugs, run_batch).main(count, words);
}
