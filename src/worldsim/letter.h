#pragma once

// Letter: a message of the simulation. Its bytes say in which world who sent it to whom, by which tag, in which class,
// and as which one of these; all other bytes follow from that. So a receiver sees what it got, whole or not.
//
// Thread rule: pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hawser/transfer.h>

namespace hawser::worldsim {

struct Letter {
  std::uint64_t realm = 0;  ///< The world.
  std::uint32_t from = 0, to = 0;
  std::uint64_t tag = 0;
  std::uint64_t number = 0;  ///< Among those of this world, source, target, tag and class.
  std::uint64_t size = 0;    ///< Of all.
  Priority priority = Priority::kBulk;
  std::array<std::uint8_t, 7> unused = {};
  friend bool operator==(const Letter&, const Letter&) = default;
};

inline constexpr std::size_t kLetterMin = 48;

/// At least kLetterMin bytes.
std::vector<std::byte> write_letter(Letter letter);
/// Nothing where the bytes are no whole letter.
std::optional<Letter> read_letter(std::span<const std::byte> bytes);

}  // namespace hawser::worldsim
