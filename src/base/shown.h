#pragma once

// Text of a peer, a server or a file as it may stand in an error, a log or on a terminal: whatever moves a cursor,
// begins a line or turns the writing's direction is written out as \xNN, and it is cut where it is long. Every place
// that quotes what came from outside goes through here.
//
// Thread rule: pure functions.

#include <cstddef>
#include <string>
#include <string_view>

namespace hawser::base {

inline constexpr std::size_t kShownMax = 300;  ///< Bytes of the text; beyond, "..." stands for the rest.

std::string shown(std::string_view text, std::size_t max = kShownMax);

}  // namespace hawser::base
