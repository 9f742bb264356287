#pragma once

// For tests: ranks on hosts.

#include <cstdint>
#include <vector>

namespace hawser::schedule {

/// By rank, the number of its host: `ranks` on each of `hosts`, one after another or in turn.
inline std::vector<std::uint32_t> placed(std::uint32_t hosts, std::uint32_t ranks, bool in_turn) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t rank = 0; rank < hosts * ranks; ++rank) all.push_back(in_turn ? rank % hosts : rank / ranks);
  return all;
}

}  // namespace hawser::schedule
