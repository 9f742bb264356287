#pragma once

// A fast 64-bit checksum over words, against truncation and corruption by accident. It is no authentication: whoever
// can change bytes can change the checksum too.
//
// The frame that carries it (see card.h, table.h) is fixed for ever, and so is this function.
// Thread rule: a pure function.

#include <cstddef>
#include <cstdint>
#include <span>

namespace hawser::wire {

inline constexpr std::size_t kChecksumSize = sizeof(std::uint64_t);

std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace hawser::wire
