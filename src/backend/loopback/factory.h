#pragma once

// The loopback backend: an agent reaches its own regions, by copies within the process.
//
// Parameters: inline_bytes_max.
//
// Thread rule: any thread.

#include "backend/backend.h"

namespace hawser::backend {

Factory loopback_factory();

}  // namespace hawser::backend
