#pragma once

// Small text files of the kernel (sysfs, procfs), read in one piece and without the heap.
//
// Thread rule: pure reads.

#include <cstddef>
#include <span>
#include <string_view>

namespace hawser::base {

inline constexpr std::size_t kSmallFileMax = 4096;  ///< A page: no file of sysfs is longer.

/// The file's beginning, as much as `room` holds, without blanks at its end; empty when it cannot be read. Lies in
/// `room`.
std::string_view read_small_file(const char* path, std::span<char> room) noexcept;

}  // namespace hawser::base
