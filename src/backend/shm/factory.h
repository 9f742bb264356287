#pragma once

// The shm backend: agents of one host and one user, through shared memory.
//
// Parameters: socket_dir, runtime_dir, ring_bytes, inline_bytes_max, map, attach, allow_attach, membarrier,
// hot_paths: options.h.
//
// Thread rule: any thread.

#include "backend/backend.h"

namespace hawser::backend {

Factory shm_factory();

}  // namespace hawser::backend
