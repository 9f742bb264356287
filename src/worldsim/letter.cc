#include "worldsim/letter.h"

#include <algorithm>
#include <cstring>

#include "sim/memory.h"

namespace hawser::worldsim {

std::vector<std::byte> write_letter(Letter letter) {
  letter.size = std::max<std::uint64_t>(letter.size, kLetterMin);
  static_assert(sizeof(Letter) == kLetterMin);
  std::vector<std::byte> bytes(letter.size);
  std::memcpy(bytes.data(), &letter, sizeof letter);
  simulation::fill_pattern(std::span(bytes).subspan(kLetterMin), letter.realm + letter.tag, letter.number);
  return bytes;
}

std::optional<Letter> read_letter(std::span<const std::byte> bytes) {
  Letter letter;
  if (bytes.size() < kLetterMin) return std::nullopt;
  std::memcpy(&letter, bytes.data(), sizeof letter);
  const bool is_whole = letter.size == bytes.size() &&
                        simulation::has_pattern(bytes.subspan(kLetterMin), letter.realm + letter.tag, letter.number);
  return is_whole ? std::optional(letter) : std::nullopt;
}

}  // namespace hawser::worldsim
