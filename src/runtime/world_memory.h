#pragma once

// WorldMemory: what World::memory tells, summed up over the worlds of one family.
//
// Thread rule: one thread.

#include <cstdint>
#include <vector>

#include <hawser/world.h>

namespace hawser::runtime {

struct WorldMemory {
  std::uint64_t boards = 0, unreceived = 0, receives = 0, pool = 0, calls = 0, collectives = 0, relays = 0;
  std::uint64_t flight_recorder = 0;

  /// All kinds, those without bytes too, always in the same order.
  std::vector<MemoryUse> list() const;
};

}  // namespace hawser::runtime
