#pragma once

// A container's limits: those of this process's control group and of the groups above it, of version 2 and version 1.
// A process that goes beyond such a limit gets no error: the kernel kills it.
//
// Thread rule: any thread; reads a few small files.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::base {

struct GroupMemory {
  std::uint64_t limit = 0;  ///< Bytes.
  std::uint64_t left = 0;   ///< Still free, with the pages of files that the kernel can drop.
  std::string file;         ///< Where the limit stands.
};

/// The limit that leaves the least; nothing where there is none. `root` is before "/proc" and "/sys", for tests.
std::optional<GroupMemory> group_memory(const std::string& root = "");
/// Processors (1.5 means one and a half); nothing where there is no limit.
std::optional<double> group_processors(const std::string& root = "");
/// Good where the group leaves `bytes`; else kBusy, naming the limit.
Status check_group_memory(std::string_view what, std::uint64_t bytes, const std::string& root = "");

}  // namespace hawser::base
