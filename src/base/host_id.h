#pragma once

// A number for the host that this process is on: its kernel's start and its network stack. Containers with networks of
// their own are hosts of their own.
//
// Thread rule: any thread. Reads two files.

#include <cstdint>

#include <hawser/status.h>

namespace hawser::base {

/// Never 0. kBusy: this process has no descriptor to ask with.
Result<std::uint64_t> this_host();

}  // namespace hawser::base
