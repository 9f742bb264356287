#pragma once

// Text of --help, folded to the width of a terminal.
//
// Thread rule: pure functions.

#include <cstddef>
#include <string>
#include <string_view>

namespace hawser::cli {

inline constexpr std::size_t kHelpColumns = 100;

/// Folds lines longer than `columns` at blanks. The rest begins where the line's last column of text does: behind
/// the last run of two blanks or more, else where the line itself begins. A word longer than a line stays whole.
std::string wrap(std::string_view text, std::size_t columns = kHelpColumns);

}  // namespace hawser::cli
