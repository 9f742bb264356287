#pragma once

// A memory file that may be sealed, cannot be executed and is not inherited by programs that are started.
//
// Thread rule: any thread.

#include "base/fd.h"

namespace hawser::backend {

/// Empty when the kernel refuses; errno tells why. `name` is for people who look into /proc.
base::Fd make_memory_file(const char* name, unsigned flags = 0);

}  // namespace hawser::backend
