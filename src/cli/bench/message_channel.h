#pragma once

// The channel on which the bench's child takes messages.

#include <cstdint>

namespace hawser::cli::bench {

inline constexpr std::uint32_t kBenchChannel = 16;
inline constexpr std::uint32_t kBenchCredit = 64;  ///< Messages that may wait.

}  // namespace hawser::cli::bench
