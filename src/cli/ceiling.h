#pragma once

// The ceiling of the demo's figures: raw loops, without Hawser, that move the demo's blocks on this machine.
//
// Both loops move blocks from random places to other random places, with pages touched before, in the same run as what
// they are compared with. The fastest of several ways counts. One way to copy is Hawser's own, without all around it.

#include <cstdint>
#include <string>

#include <hawser/status.h>

namespace hawser::cli {

struct Ceiling {
  std::string how;  ///< The way that won: "non-temporal stores", "2 sockets".
  double gb_per_s = 0;
};

struct CeilingShape {
  std::uint64_t block_bytes = 0;
  std::uint64_t bytes = 0;  ///< To move in one pass; bounded by the caller, twice as much memory is used.
};

/// The best copy of scattered blocks in one process, one thread, between two memory files.
Result<Ceiling> copy_ceiling(const CeilingShape& shape);
/// The best raw stream of gathered and scattered blocks over loopback TCP between two processes, one thread each, with
/// one and with two sockets.
Result<Ceiling> tcp_ceiling(const CeilingShape& shape);
/// The one that bounds a backend's figures; kUnsupported for a backend without one.
Result<Ceiling> measure_ceiling(const std::string& backend, const CeilingShape& shape);

/// How long a cache line takes from one core to another and back, ns; 0 when there is but one. Virtual machines move
/// their cores about ("near" or "far"), and figures taken at different times are then not comparable.
std::int64_t core_round_trip_ns();

}  // namespace hawser::cli
