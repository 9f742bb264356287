#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY
#endif
#include <fmt/format.h>

#include "base/format.h"

namespace hawser::base {

std::string vformat(fmt::string_view text, fmt::format_args values) { return fmt::vformat(text, values); }

}  // namespace hawser::base
