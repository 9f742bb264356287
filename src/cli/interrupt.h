#pragma once

// Ctrl-C and SIGTERM as a flag that loops look at, so that commands end in order: peers told, children reaped.
// A second Ctrl-C kills the process at once.

#include <hawser/status.h>

namespace hawser::cli {

/// From now on the signals only set the flag.
void catch_interrupts();
bool interrupted();
/// kCancelled naming the signal, or good.
Status interrupt_status();

}  // namespace hawser::cli
