#pragma once

// What memory the host can still give. Who takes more of shared memory gets no error: the kernel ends processes, this
// one or others, until there is room.
//
// Thread rule: any thread; reads a small file.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::base {

/// Bytes of memory and of swap that are free or can be made free; nothing where the kernel does not tell. `root` is
/// before "/proc", for tests.
std::optional<std::uint64_t> host_memory_left(const std::string& root = "");
/// Good where the host has `bytes`; else kBusy.
Status check_host_memory(std::string_view what, std::uint64_t bytes, const std::string& root = "");

}  // namespace hawser::base
