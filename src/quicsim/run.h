#pragma once

// One run of simulated QUIC connections: everything about it follows from its seed.
//
// Thread rule: run_seed may be called from several threads at once with different seeds. Lifetime: values.

#include <cstddef>
#include <cstdint>
#include <string>

#include <hawser/status.h>

#include "quicsim/coverage.h"
#include "sim/simulation.h"

namespace hawser::quicsim {

/// The mode does not count: QUIC is one.
using RunOptions = simulation::RunOptions;

struct Run {
  bool ok = true;
  std::string failure;      ///< What broke, when and where.
  std::uint64_t hash = 0;   ///< Of the trace: equal for equal seeds.
  std::uint64_t steps = 0;  ///< Events of the world.
  std::uint64_t bytes = 0, streams = 0;
  std::size_t connections = 0, faults = 0;
  Coverage coverage;

  /// What was counted.
  void add(const Run& other) {
    steps += other.steps;
    bytes += other.bytes;
    streams += other.streams;
    connections += other.connections;
    faults += other.faults;
    coverage.add(other.coverage);
  }
};

/// Whether ngtcp2 is here. Errors: kUnsupported: what to install.
Status is_ready();

/// After is_ready.
Run run_seed(const RunOptions& options);

}  // namespace hawser::quicsim
