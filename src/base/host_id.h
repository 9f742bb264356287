#pragma once

// The host that this process is on: its name, and a number made of its kernel's start and its network stack. Containers
// with networks of their own are hosts of their own.
//
// Thread rule: any thread. Reads two files.

#include <cstdint>
#include <string>

#include <hawser/status.h>

namespace hawser::base {

/// As the system calls the host; empty: it does not say. Two hosts may have one name.
std::string host_name();
/// Never 0. kBusy: this process has no descriptor to ask with.
Result<std::uint64_t> this_host();

}  // namespace hawser::base
