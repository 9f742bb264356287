#pragma once

// Processor time that other processes took while a row ran, read from /proc (proc(5)).
//
// Thread rule: pure reads.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hawser::cli::bench {

/// Processor time since the system's start, in clock ticks of all cores together.
struct CpuTicks {
  std::uint64_t all = 0;   ///< Idle time too.
  std::uint64_t busy = 0;  ///< Ticks of all processes, of the kernel, and those that a virtual machine's host took.
};

struct ProcessTicks {
  int id = 0, parent = 0;
  std::uint64_t own = 0;    ///< Ticks, user and system.
  std::uint64_t ended = 0;  ///< Those of its children that have ended and were waited for.
};

/// Of /proc/stat and of /proc/PID/stat; nothing when the text is not of that form.
std::optional<CpuTicks> cpu_ticks_of(std::string_view text);
std::optional<ProcessTicks> process_ticks_of(std::string_view text);
/// Ticks of process `root` and of all below it, those that ended included.
std::uint64_t family_ticks(const std::vector<ProcessTicks>& processes, int root);

/// One reading: the machine's time, and that of this process with all below it.
struct CpuReading {
  CpuTicks machine;
  std::uint64_t ours = 0;
};
std::optional<CpuReading> read_cpu();

/// The share of all cores, 0 to 1, that others had between two readings. Nothing when the two are too close to tell.
std::optional<double> others_share(const CpuReading& before, const CpuReading& after);

/// A row is disturbed from this share on: a fifth of a core where there are two.
inline constexpr double kDisturbedShare = 0.1;

}  // namespace hawser::cli::bench
