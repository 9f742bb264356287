#pragma once

// What the command line's own streams need besides printing.

#include <hawser/status.h>

namespace hawser::cli {

/// Opens /dev/null for each of the descriptors 0, 1 and 2 that the caller has closed. Otherwise a file or a socket of
/// the command would get that number, and the command would print into it.
void open_missing_streams();

/// Writes what is buffered for stdout. kFailed: some of it could not be written, now or before.
Status finish_output();

}  // namespace hawser::cli
