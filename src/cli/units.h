#pragma once

// Sizes, durations and rates as reports print them: short, rounded. (base/quantity.h parses, and writes exactly.)

#include <cstdint>
#include <string>

#include <hawser/time.h>

namespace hawser::cli {

/// "1.50 GiB", "32 KiB", "17 B".
std::string short_size(std::uint64_t bytes);
/// "812 ns", "3.4 µs", "12.1 ms", "2.50 s".
std::string short_duration(Duration duration);
/// Bytes per nanosecond are GB/s (10^9); 0 when no time passed.
double rate(std::uint64_t bytes, std::int64_t ns);
/// "12.34", or "-" for nothing measured.
std::string short_rate(double gb_per_s);

}  // namespace hawser::cli
