#pragma once

// For tests: what a port of streams is given, of an agent without security.
//
// Thread rule: the test's thread.

#include <chrono>

#include "backend/backend.h"

namespace hawser::backend::stream {

/// The arguments outlive it.
inline Context test_context(const Identity& identity, RegionTable& regions, base::Logger& log) {
  return {.identity = identity,
          .regions = regions,
          .log = log,
          .rng = base::Rng(1),
          .security = Security::kNone,
          .heartbeat = std::chrono::milliseconds(250),
          .clock = Clock::steady()};
}

}  // namespace hawser::backend::stream
