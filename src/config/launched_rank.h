#pragma once

// Which variables of the environment tell a process its rank.

#include <string_view>

namespace hawser::config {

bool tells_of_rank(std::string_view variable);

}  // namespace hawser::config
