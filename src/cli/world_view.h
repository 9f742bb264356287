#pragma once

// What `hawser top` shows of worlds: the flight recorders of their ranks on this host (runtime/flight_file.h), who does
// what since when, and whom the others wait for.
//
// Thread rule: pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include <hawser/time.h>

#include "cli/json_out.h"
#include "runtime/flight_file.h"

namespace hawser::cli {

/// Ranks that took part in one formation of a world, by rank.
using WorldLook = std::vector<runtime::Flight>;

/// Formations apart: two ranks belong together where both recorded an operation of the same world or group. The one
/// that was at work last comes first.
std::vector<WorldLook> formations(std::vector<runtime::Flight> flights);

/// One rank that is behind in one world or group.
struct Behind {
  std::string world;         ///< The world's or group's name.
  std::uint64_t number = 0;  ///< The operation that the rank has not begun.
  std::string operation;     ///< The other ranks' operation of that number.
  std::uint32_t rank = 0;    ///< The rank's number in that world or group.
  std::uint64_t last = 0;    ///< The last number that the rank has begun.
  bool is_alive = false;
  std::vector<std::uint32_t> waiting;  ///< Ranks that have begun it, and not ended it well.
  std::int64_t since_ns = 0;           ///< When the first of them did.
};
std::vector<Behind> behind(const WorldLook& look);

/// Calls of one number that are not of one kind: "number 7 of 'trainer' is all_reduce f32 of 4 on rank 0, ...".
std::vector<std::string> differing(const WorldLook& look);

/// The name of the world that all of these ranks opened.
std::string world_name(const WorldLook& look);

/// A table of the world, one of each of its groups, and who is behind in them.
std::string world_text(const WorldLook& look, Instant at);
/// As JSON. Each rank has `flight_recorder`, in the form that torch's flight recorder dumps.
Json world_json(const WorldLook& look, Instant at);

/// The worlds of one agent, from the recorders of its ranks: a line for each world, and for each group that it calls
/// something in.
std::string agent_worlds_text(const std::vector<runtime::Flight>& flights, Instant at);
/// As JSON: of each opened world its rank, with `flight_recorder` as in `world_json`.
Json agent_worlds_json(const std::vector<runtime::Flight>& flights);

}  // namespace hawser::cli
