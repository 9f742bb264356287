#pragma once

// The words for yes and no in what users of NIXL set: variables that switch backends, flags among parameters.
//
// Thread rule: a pure function.

#include <optional>
#include <string>
#include <string_view>

#include <hawser/export.h>

#include "base/quantity.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr std::string_view kSwitchWords = "one of 1, true, on, yes, 0, false, off, no";

/// In any case, blanks around it left aside. Nothing for another word.
inline std::optional<bool> parse_switch(std::string_view text) {
  const std::string word = base::to_lower(base::trim(text));
  for (const std::string_view yes : {"1", "true", "on", "yes"}) {
    if (word == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "off", "no"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

}  // namespace compat
HAWSER_NAMESPACE_END
