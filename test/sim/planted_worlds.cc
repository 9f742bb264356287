// planted_worlds: plants one bug in worlds; see planted_program.h.

#include "planted_program.h"
#include "planted_worlds_table.h"
#include "worldsim/batch.h"

int main(int count, char** words) {
  using namespace hawser::worldsim;
  return hawser::simulation::PlantedProgram<Run>("planted_worlds", kPlantedBugs, run_batch).main(count, words);
}
