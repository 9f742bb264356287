#pragma once

// The suite in virtual time: agents on simulated hosts of one universe.

#include <memory>

#include "backend/sim/factory.h"
#include "environment.h"

namespace hawser::conformance {

std::unique_ptr<Environment> make_sim_environment(sim::Mode mode);

}  // namespace hawser::conformance
