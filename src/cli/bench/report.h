#pragma once

// The bench's results, for people and for programs.

#include <array>
#include <string>
#include <vector>

#include <hawser/config.h>

#include "cli/bench/bench.h"
#include "cli/bench/figure.h"
#include "cli/json_out.h"

namespace hawser::cli::bench {

/// The surroundings of all rows: configuration, backends, machine.
struct Surroundings {
  std::string version;
  std::string copy_kernel;
  std::array<int, 2> cores = {-1, -1};
  bool huge_pages = false;              ///< True where `allocate` got them.
  std::vector<BackendReport> backends;  ///< As an agent in the default configuration reports them.
  std::vector<ConfigValue> changed;     ///< Options that are not at their defaults.
  std::string ucx;                      ///< Path of ucx_perftest, or empty.
};
Result<Surroundings> look_around(const BenchOptions& options);

std::string surroundings_text(const Surroundings& surroundings, const BenchOptions& options);
std::string results_text(const std::vector<Outcome>& outcomes);
Json results_json(const Surroundings& surroundings, const BenchOptions& options, const std::vector<Outcome>& outcomes);
/// All rows with their targets, without running any.
std::string rows_text(const std::vector<Row>& rows);
Json rows_json(const std::vector<Row>& rows);

}  // namespace hawser::cli::bench
