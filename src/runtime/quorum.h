#pragma once

// Whether the ranks that are left of a world may go on as a new one.
//
// Thread rule: a pure function.

#include <cstdint>
#include <string_view>

#include <hawser/world.h>

namespace hawser::runtime {

struct QuorumCount {
  std::uint32_t size = 0;  ///< Of the world.
  std::uint32_t left = 0;  ///< Ranks of the new one.
  std::uint32_t dead = 0;  ///< Whose end is proven, or who left. They do not count.
};

/// kDenied: Quorum::kMajority wants more than half of those that are not proven dead.
Status check_quorum(Quorum quorum, std::string_view world, const QuorumCount& count);

}  // namespace hawser::runtime
