#pragma once

// Small files of sysfs, by value: what cannot be read is empty.
//
// Thread rule: pure reads.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hawser::backend::verbs {

/// The whole file without blanks at its end; empty when it cannot be read.
std::string read_text(const std::filesystem::path& path);
/// A number at the beginning of the file, decimal or with 0x; nothing when there is none.
std::optional<int> read_int(const std::filesystem::path& path);
/// Names of what is in a folder; numbers in them count by value.
std::vector<std::string> names_in(const std::filesystem::path& folder);
/// Numbers of the NUMA nodes; a kernel without NUMA has one, 0, and tells of none.
std::vector<std::string> numa_nodes_in(const std::filesystem::path& sysfs_root);

}  // namespace hawser::backend::verbs
