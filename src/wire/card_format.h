#pragma once

// Numbers of the card's form that its encoder and its decoder share. See card.h for the grammar.
//
// Thread rule: constants.

#include <cstddef>
#include <cstdint>

#include "wire/checksum.h"

namespace hawser::wire::card_format {

inline constexpr std::size_t kHeaderSize = 4 + 2 + 2 + 4;  ///< magic, versions, size.
inline constexpr std::size_t kFrameSize = kHeaderSize + kChecksumSize;

inline constexpr std::uint16_t kCritical = 0x8000;
inline constexpr std::uint16_t kHead = kCritical | 1;
inline constexpr std::uint16_t kBackends = kCritical | 2;
inline constexpr std::uint16_t kRegions = kCritical | 3;
inline constexpr std::uint16_t kText = kCritical | 4;
inline constexpr std::uint16_t kRemoved = kCritical | 5;
inline constexpr std::size_t kKnownSections = 5;

inline constexpr std::uint8_t kDriven = 1;

inline constexpr std::uint8_t kRightsMask = 3;
inline constexpr std::uint8_t kNamed = 4;
inline constexpr std::uint8_t kDevice = 8;
inline constexpr std::uint8_t kExtras = 16;
inline constexpr std::uint8_t kRegionFlags = kRightsMask | kNamed | kDevice | kExtras;

inline constexpr std::size_t kRegionSizeMin = 1 + 1 + 1 + 1 + 16;
inline constexpr std::size_t kRegionFixedMax = 5 + 5 + 1 + 10 + 16 + 3 + 5 + 2 + 1;  ///< All before the extras' list.
inline constexpr std::size_t kRemovalSizeMin = 2;
inline constexpr std::size_t kBackendSizeMin = 2;

}  // namespace hawser::wire::card_format
