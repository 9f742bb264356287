#pragma once

// Bounds that every family of wire messages shares, and the rule for an agent's name.
//
// Thread rule: constants and pure functions.

#include <cstddef>
#include <string_view>

namespace hawser::wire {

inline constexpr std::size_t kNameMax = 255;  ///< Bytes of an agent's, region's or backend's name.

/// 1 to 255 bytes without control characters: names go into logs and errors of other hosts.
constexpr bool is_agent_name(std::string_view name) {
  if (name.empty() || name.size() > kNameMax) return false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return false;
  }
  return true;
}

}  // namespace hawser::wire
