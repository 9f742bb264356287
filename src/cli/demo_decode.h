#pragma once

// The demo's decode side: it owns the target KV cache, gives its blocks to requests, acknowledges each request when its
// record arrives, and verifies the bytes when told to.

#include "cli/demo_control.h"

namespace hawser::cli {

/// Runs until the parent says quit or is gone. Returns the exit code of the process.
int run_decode(Control control);

}  // namespace hawser::cli
