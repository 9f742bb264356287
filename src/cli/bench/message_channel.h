#pragma once

// The channel on which the bench's child takes messages, and the text of the notification that it answers in mode
// "heed".

#include <cstdint>
#include <string_view>

namespace hawser::cli::bench {

inline constexpr std::uint32_t kBenchChannel = 16;
inline constexpr std::uint32_t kBenchCredit = 64;  ///< Messages that may wait.
inline constexpr std::string_view kLastMessage = "last";

}  // namespace hawser::cli::bench
