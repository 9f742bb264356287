#pragma once

// The bytes of a write: a function of its number and of the place in it, so that anybody can check them.

#include <cstddef>
#include <cstdint>
#include <span>

namespace hawser::storm {

inline std::byte pattern_byte(std::uint64_t uid, std::size_t at) {
  std::uint64_t word = (uid * 0x9e3779b97f4a7c15u) ^ ((at / 8 + 1) * 0xbf58476d1ce4e5b9u);
  word = (word ^ (word >> 29)) * 0x94d049bb133111ebu;
  return static_cast<std::byte>(word >> (8 * (at % 8)));
}

inline void fill(std::span<std::byte> bytes, std::uint64_t uid) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_byte(uid, i);
}

/// How many bytes from the start are those of `uid`. They may be written over meanwhile, by who gave up waiting for a
/// notification.
[[gnu::no_sanitize_thread]] inline std::size_t matching(std::span<const std::byte> bytes, std::uint64_t uid) {
  std::size_t same = 0;
  while (same < bytes.size() && bytes[same] == pattern_byte(uid, same)) ++same;
  return same;
}

}  // namespace hawser::storm
