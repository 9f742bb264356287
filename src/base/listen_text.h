#pragma once

// ListenText: where to listen as a user types it, in one text: "10.0.0.1", "eth0:7000", "[::]:7000-7100",
// "10.0.0.0/8,^docker0:7000". Places with commas between them, and a port or a range of ports after one of them. This
// layer does not judge places.
//
// Thread rule: pure function.

#include <optional>
#include <string>
#include <string_view>

namespace hawser::base {

struct ListenText {
  std::string places;  ///< Without brackets and ports.
  std::string ports;   ///< Digits and '-', for all places; empty: none was given.
};

/// Nothing for a text without a place, with an open bracket, with ports that are none or of two kinds.
std::optional<ListenText> split_listen(std::string_view text);

}  // namespace hawser::base
