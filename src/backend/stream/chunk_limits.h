#pragma once

// What one path may have in flight. Both halves of the protocol count on it: Initiator keeps to it, Target enforces it.

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <hawser/time.h>

#include "wire/stream_frames.h"

namespace hawser::backend::stream {

inline constexpr std::uint32_t kChunksMax = 1024;      ///< In flight on one path; the target counts on it.
inline constexpr std::uint32_t kReadsMax = 64;         ///< Reads among them, which cost the target memory.
inline constexpr std::uint64_t kBytesMax = 64u << 20;  ///< Bytes of bulk in flight on one path.
inline constexpr std::uint32_t kSmallChunks = 128;     ///< Of those chunks bulk leaves so many to small ones,
inline constexpr std::uint32_t kSmallReads = 8;        ///< and of the reads.
inline constexpr std::uint64_t kInlineMax = 2048;      ///< Payload up to this size is copied behind its head.

/// A cancelled write waits for the peer's answer for one to two of these, and for the stream that refers to its memory
/// for kHeldPeriods of them.
inline constexpr Duration kAnswerPeriod = std::chrono::milliseconds(50);
inline constexpr std::uint32_t kHeldPeriods = 20;

/// Staged bytes of the largest frame of a chunk, with what may have to come before it.
inline constexpr std::size_t kFrameRoom = 8 * 1024;
static_assert(wire::lead_size(28) + wire::lead_size(wire::kMetaMax) + kInlineMax + 2 * wire::kFrameAlign +
                  wire::kTrailerSize <=
              kFrameRoom);

}  // namespace hawser::backend::stream
