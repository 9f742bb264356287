#pragma once

// How the machines of this layer write their tables: names by value, columns by spaces.
//
// Thread rule: pure functions.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace hawser::proto {

/// The name of an enumerator, by its number.
template <typename Value, std::size_t kCount>
std::string_view name_in(const std::array<std::string_view, kCount>& names, Value value) {
  const auto place = static_cast<std::size_t>(value);
  return place < kCount ? names[place] : "unknown";
}

inline void append_padded(std::string& out, std::string_view text, std::size_t width) {
  out.append(text);
  out.append(width > text.size() ? width - text.size() : 0, ' ');
}

/// ", " between the actions' names, and the end of the line.
template <typename Actions>
void append_actions(std::string& out, const Actions& actions) {
  std::string_view between;
  for (const auto action : actions) {
    out.append(between).append(to_string(action));
    between = ", ";
  }
  out.push_back('\n');
}

}  // namespace hawser::proto
