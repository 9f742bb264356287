#pragma once

// Tuning: one rank's part in the measuring of a cost model. All ranks of the world make the same calls.
//
// Within a host the ranks of rank 0's host measure, each algorithm by its name; between hosts one rank of each host. A
// part that cannot be measured, for a rank is alone on its host or all are on one, is left out of the file.
//
// Thread rule: one thread. Lifetime: within the world's.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <hawser/world.h>

#include "cli/coll/fit.h"
#include "cli/coll/meter.h"
#include "cli/json_out.h"
#include "runtime/cost_file.h"

namespace hawser::cli::coll {

/// One call beside what both models say of it.
struct TuneRow {
  Item item;
  schedule::Algorithm algorithm = schedule::Algorithm::kDirect;
  bool far = false;
  bool is_fitted = false;  ///< The model was fitted to it. Else it is a check at a size that the fit knows nothing of.
  double ns = 0;           ///< Measured: of each round the lower quartile, and of these the lower quartile.
  Parts parts = {};
};

struct Tuned {
  runtime::CostFile file;
  std::vector<TuneRow> rows;
  std::uint64_t wrong = 0;  ///< Elements.
};

/// On rank 0 all of it, on others an empty file. kUnsupported: nothing can be measured, for the world has one rank.
Result<Tuned> tune(World& world, std::size_t rounds);

/// How many times off the model is, in the median: of what it was fitted to, or of the checks. 1 is exact.
double misfit_of(const Tuned& tuned, const schedule::CostModel& model, bool fitted);

/// What the choices of the model cost: the time of the algorithm that it chooses over that of the fastest, in the mean
/// (geometric) of the calls that were measured by several algorithms. 1: it always chooses the fastest.
double price_of_choices(const Tuned& tuned, const schedule::CostModel& model);

/// What it says on one line: which processor this is.
std::string cpu_name();
/// "2026-11-28T22:50:00Z".
std::string date_now();

}  // namespace hawser::cli::coll
