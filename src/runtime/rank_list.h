#pragma once

// Ranks in texts for people: "1, 4, 5"; and the error of one that there is not.
//
// Thread rule: pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

namespace hawser::runtime {

inline std::string list_of(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (const std::uint32_t rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

/// kInvalid: the world of that name and size has no such rank.
inline Status check_rank(std::string_view call, std::string_view world, std::uint32_t rank, std::uint32_t size) {
  if (rank < size) return {};
  return Status(Code::kInvalid, std::string(call) + ": world '" + std::string(world) + "' has no rank " +
                                    std::to_string(rank) + ", its ranks are 0 to " + std::to_string(size - 1));
}

}  // namespace hawser::runtime
