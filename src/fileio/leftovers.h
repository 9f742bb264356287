#pragma once

// Queues that were closed while the kernel still had operations of them. They are kept, with the memory that they use,
// until these have ended. A file system that hangs keeps nobody from closing, and nothing is written to freed memory.
//
// Thread rule: any thread. Lifetime: of the process.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fileio/mover.h"

namespace hawser::fileio {

/// So many are kept; who comes then waits.
inline constexpr std::size_t kLeftoversMax = 64;

using Pages = std::shared_ptr<void>;  ///< With what frees them.

/// All of the mover's tasks were stopped; `used` is what their operations may still touch. Frees what was kept earlier
/// and ended meanwhile.
void keep_until_ended(std::unique_ptr<Mover> mover, std::vector<Pages> used);
/// Frees what ended meanwhile. Returns how many are left.
std::size_t sweep_leftovers();

}  // namespace hawser::fileio
