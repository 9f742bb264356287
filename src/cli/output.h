#pragma once

// What the command line's own streams need besides printing.

#include <hawser/status.h>

namespace hawser::cli {

/// Of the descriptors 0, 1 and 2 those that the caller closed lead to /dev/null from now on. Otherwise a file or a
/// socket of the command would get such a number, and what is printed would go into it.
void open_missing_streams();

/// Writes what is buffered for stdout. kFailed: some of it could not be written, now or before.
Status finish_output();

}  // namespace hawser::cli
