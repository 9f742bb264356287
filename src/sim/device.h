#pragma once

// Device: what the better of an agent's two backends needs, and what can be taken away and given back: its paths end
// then, and no new one opens or stays open. So sessions go on by the lesser backend, and come back.
//
// Thread rule: one thread. Lifetime: by shared_ptr, that of the last who looks at it.

#include <memory>

#include "backend/backend.h"

namespace hawser::simulation {

struct Device {
  bool is_away = false;
};

/// The backend that `inner` opens, as long as the device is there.
backend::Factory device_factory(const backend::Factory& inner, std::shared_ptr<Device> device);

}  // namespace hawser::simulation
