#pragma once

// The limits of this process: resource limits, memory, kernel settings. Read from /proc and /sys; what cannot be read
// is absent, never guessed.
//
// Thread rule: pure reads.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hawser::cli {

/// The whole of a small file, without blanks at its end; nothing when it cannot be read.
std::optional<std::string> read_file(const std::string& path);
std::optional<std::uint64_t> read_number(const std::string& path);
/// The word in brackets: "always [madvise] never" gives "madvise".
std::string chosen_word(const std::string& text);

/// Memory that new work may use, bytes: what is free, or what the control group leaves, whichever is less. 0: unknown.
std::uint64_t available_memory();
struct Limit {
  std::string name;
  std::string value;  ///< "8 MiB", "unlimited".
  std::optional<std::uint64_t> number;
};
/// Those that Hawser meets: memlock, nofile, max_map_count, socket buffers, /dev/shm.
std::vector<Limit> system_limits();

}  // namespace hawser::cli
