#pragma once

// The backends that an agent opens by name, unless its maker brings others (as the simulator does).

#include <vector>

#include "backend/backend.h"

namespace hawser::agent {

std::vector<backend::Factory> default_backends();

}  // namespace hawser::agent
