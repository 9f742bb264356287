#pragma once

// One run of a simulated world: everything about it follows from its seed.
//
// Thread rule: run_seed may be called from several threads at once with different seeds. Lifetime: values.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <hawser/time.h>

#include "base/planted.h"
#include "worldsim/coverage.h"

namespace hawser::worldsim {

struct RunOptions {
  std::uint64_t seed = 1;
  sim::Mode mode = sim::Mode::kStream;
  base::Planted plant = base::Planted::kNone;
  std::function<void(Instant, std::string_view)> trace = {};  ///< Empty: none.
};

struct Run {
  bool ok = true;
  std::string failure;      ///< What broke, when and where.
  std::uint64_t hash = 0;   ///< Of the trace: equal for equal seeds.
  std::uint64_t steps = 0;  ///< Events of the universe.
  std::uint64_t deeds = 0, good = 0, bad = 0;
  std::size_t ranks = 0, worlds = 0, faults = 0;
  Coverage coverage;
};

Run run_seed(const RunOptions& options);

}  // namespace hawser::worldsim
