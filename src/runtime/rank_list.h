#pragma once

// Ranks as a text for people: "1, 4, 5".
//
// Thread rule: a pure function.

#include <cstdint>
#include <string>
#include <vector>

namespace hawser::runtime {

inline std::string list_of(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (const std::uint32_t rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace hawser::runtime
