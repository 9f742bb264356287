#pragma once

// A writer that fills slots of shared memory and a reader that reads all of each, by two words in shared lines.

#include <cstdint>
#include <functional>
#include <span>

#include <hawser/status.h>
#include <hawser/time.h>

#include "cli/bench/board.h"
#include "cli/raw_copy.h"

namespace hawser::cli::bench {

inline constexpr std::uint64_t kConsumeSlots = 2;  ///< In flight.

/// The child's side, until `over`.
void consume_slots(const Board& board, std::uint64_t slot_bytes, const std::function<bool()>& over);
/// The parent's side: copies `source` into slot after slot for about `budget`. Returns GB/s.
Result<double> fill_slots(const Board& board, std::span<const std::byte> source, const CopyWay& way, Duration budget);

}  // namespace hawser::cli::bench
