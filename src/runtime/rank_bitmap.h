#pragma once

// A set of ranks as bytes: a bit for each, that of rank 0 is the lowest of the first byte.
//
// Thread rule: pure functions.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hawser::runtime {

inline constexpr int kBitsPerByte = 8;

inline std::string bitmap_of(const std::vector<bool>& ranks) {
  std::string bytes((ranks.size() + kBitsPerByte - 1) / kBitsPerByte, '\0');
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i]) bytes[i / kBitsPerByte] = static_cast<char>(bytes[i / kBitsPerByte] | 1 << (i % kBitsPerByte));
  }
  return bytes;
}

/// Empty: it is not of a world of that size.
inline std::vector<bool> ranks_of(std::span<const std::byte> bitmap, std::size_t size) {
  if (bitmap.size() != (size + kBitsPerByte - 1) / kBitsPerByte) return {};
  std::vector<bool> ranks(size);
  for (std::size_t i = 0; i < size; ++i) {
    ranks[i] = (std::to_integer<int>(bitmap[i / kBitsPerByte]) >> (i % kBitsPerByte) & 1) != 0;
  }
  return ranks;
}

}  // namespace hawser::runtime
