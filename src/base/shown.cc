#include "base/shown.h"

#include <algorithm>
#include <cstdint>

namespace hawser::base {
namespace {

struct Sequence {
  std::uint32_t point = 0;
  std::size_t size = 0;  ///< 0: these bytes are no UTF-8.
};

Sequence first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < size) return {};
  std::uint32_t point = byte(0) & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    point = point << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < kSmallest[size] || point > 0x10ffff || surrogate ? Sequence() : Sequence{point, size};
}

/// Controls, line ends, and marks that turn the direction of what follows.
bool is_harmful(std::uint32_t point) {
  constexpr std::uint32_t kRanges[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},  {0x200e, 0x200f},
                                          {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
  return std::ranges::any_of(kRanges, [&](const auto& range) { return point >= range[0] && point <= range[1]; });
}

}  // namespace

std::string shown(std::string_view text, std::size_t max) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const Sequence next = first_of(text.substr(at));
    const std::size_t size = std::max<std::size_t>(next.size, 1);
    if (at + size > max) break;
    if (next.size > 0 && !is_harmful(next.point)) {
      out += text.substr(at, size);
    } else {
      for (const char c : text.substr(at, size)) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      }
    }
    at += size;
  }
  if (at < text.size()) out += "...";
  return out;
}

}  // namespace hawser::base
