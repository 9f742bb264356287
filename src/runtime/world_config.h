#pragma once

// What World::config tells: the options of a world as they have ended up, and where each came from.
//
// Thread rule: pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/world.h>

namespace hawser::runtime {

/// What the options do not say.
struct WorldFacts {
  std::string place;  ///< Where the ranks found one another. No secret.
  std::string costs;  ///< World::cost_model.
  std::string agent;  ///< The agent's name.
  bool is_guest = false;
};

/// `options` with the rank and size that the world has. kNone stands where no quorum was given.
std::vector<ConfigValue> config_of(const WorldOptions& options, const WorldFacts& facts);
/// Of a place that was given, without its ticket: "seed 10.0.0.5:7000", "a store", "directory of kind file".
std::string place_of(const WorldOptions& options);

}  // namespace hawser::runtime
