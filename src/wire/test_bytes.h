#pragma once

// For tests of decoders: bytes as hexadecimal text, and inputs that are cut off or changed.
//
// Thread rule: pure functions.

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"

namespace hawser::wire {

inline std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// Hands `decode` an exact heap copy, so that AddressSanitizer sees a read past the end.
template <typename Decode>
void feed(std::string_view bytes, Decode decode) {
  const std::vector<char> copy(bytes.begin(), bytes.end());
  decode(base::as_bytes(std::string_view(copy.data(), copy.size())));
}

/// `decode(span)` is called with every shorter beginning of `good`.
template <typename Decode>
void feed_every_cut(std::string_view good, Decode decode) {
  for (std::size_t size = 0; size < good.size(); ++size) {
    SCOPED_TRACE(size);
    feed(good.substr(0, size), decode);
  }
}

/// `decode(span)` is called with `good` after random changes, and with noise.
template <typename Decode>
void feed_garbage(std::string_view good, int rounds, Decode decode) {
  base::Rng rng(1);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    std::string bytes(good);
    if (rng.chance(0.3)) bytes.resize(static_cast<std::size_t>(rng.below(good.size() * 2)));
    const std::uint64_t changes = rng.chance(0.3) ? bytes.size() : 1 + rng.below(4);
    for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
      bytes[static_cast<std::size_t>(rng.below(bytes.size()))] = static_cast<char>(rng.u64());
    }
    feed(bytes, decode);
  }
}

}  // namespace hawser::wire
