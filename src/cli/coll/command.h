#pragma once

// The command `hawser bench coll`.

#include "cli/command.h"

namespace hawser::cli {

/// Below the command `bench`.
void add_bench_coll(Shell& shell, CLI::App& bench);

}  // namespace hawser::cli
