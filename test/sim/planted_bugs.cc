// planted_bugs: plants one bug in agents; see planted_program.h.

#include "planted_program.h"
#include "planted_table.h"
#include "sim/batch.h"

int main(int count, char** words) {
  using namespace hawser::simulation;
  return PlantedProgram<Run>("planted_bugs", kPlantedBugs, run_batch).main(count, words);
}
