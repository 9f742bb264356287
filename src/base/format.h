#pragma once

// Text from values, checked at compile time: format("peer {} has {} regions", name, count).
//
// Thread rule: pure functions. Formatting itself happens in format.cc, so that users of this header pay for neither
// the formatting library's code nor its compile time.

#include <string>

#include <fmt/core.h>

namespace hawser::base {

std::string vformat(fmt::string_view text, fmt::format_args values);

template <typename... Values>
std::string format(fmt::format_string<Values...> text, Values&&... values) {
  return base::vformat(text, fmt::make_format_args(values...));
}

}  // namespace hawser::base
