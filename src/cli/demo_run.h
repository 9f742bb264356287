#pragma once

// One run of the demo over one backend: starts the decode process, moves all requests several times, verifies each.

#include <cstdint>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "cli/ceiling.h"
#include "cli/demo_geometry.h"
#include "cli/demo_prefill.h"

namespace hawser::cli {

struct DemoOptions {
  Geometry geometry;
  TokenRange tokens;
  std::uint32_t requests = 32;
  std::uint32_t concurrency = 4;  ///< Requests under way at a time.
  std::uint32_t warm_passes = 3;
  std::uint64_t memory = 0;  ///< KV cache on each side, bytes.
  std::uint64_t seed = 1;
  bool verify = true;
  bool ceiling = true;
  bool progress = false;
  std::string config;  ///< A configuration file, for the backends' parameters; may be empty.
  Duration timeout = std::chrono::seconds(60);
  /// What starts the second process on another host; empty: it starts here.
  std::vector<std::string> far_command = {};
};

/// One pass over all requests, in however many waves.
struct PassReport {
  std::uint32_t pass = 0;  ///< 0 is the cold one.
  PassTimes times;
};

struct RunReport {
  std::string backend;
  Status status;  ///< Good: all moved, and what was verified is equal.
  std::vector<PassReport> passes;
  std::uint64_t verified = 0;  ///< Requests found equal, over all passes.
  std::uint64_t to_verify = 0;
  std::int64_t verify_ns = 0;  ///< In the decode process, for all passes.
  std::int64_t connect_ns = 0;
  bool huge_pages = false;
  std::vector<std::string> faults;  ///< The first few differences that were found.
  Ceiling ceiling;                  ///< The better of the two below.
  Ceiling ceiling_before, ceiling_after;
  std::int64_t core_ns_before = 0, core_ns_after = 0;  ///< See core_round_trip_ns.
  std::string explain;
};

/// Errors are in the report's status; what was measured before them is kept.
RunReport run_backend(const DemoOptions& options, const Workload& work, const std::string& backend);

}  // namespace hawser::cli
