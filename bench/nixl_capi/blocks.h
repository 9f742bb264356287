#pragma once

// Blocks: which bytes of the two arenas a row moves, and what they hold. Both processes and the ceilings work it out by
// themselves from the row's shape, so they agree without telling each other.
//
// Thread rule: values and pure functions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace nixl_bench {

/// Of one operation.
struct Shape {
  std::uint64_t size = 0;   ///< Of a block.
  std::uint32_t count = 1;  ///< Blocks in one operation.

  std::uint64_t bytes() const { return size * count; }
};

/// Blocks lie in whole pages, in random order on both sides. Operations take windows of `count` of them in turn, so
/// what one moves is not what the last one left in a cache.
struct Blocks {
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::size_t kWindowsMax = 1024;

  std::vector<std::uint64_t> local;  ///< Offsets.
  std::vector<std::uint64_t> remote;
  std::size_t windows = 0;  ///< 0: the arena is too small.

  Blocks(const Shape& shape, std::uint64_t arena) {
    const std::uint64_t stride = (std::max(shape.size, kPage) + kPage - 1) / kPage * kPage;
    const std::size_t all = arena / stride;
    windows = std::min<std::size_t>(all / shape.count, kWindowsMax);
    local = shuffled(all, stride, 1);
    remote = shuffled(all, stride, 2);
  }

 private:
  static std::vector<std::uint64_t> shuffled(std::size_t all, std::uint64_t stride, std::uint64_t seed) {
    std::vector<std::uint64_t> offsets(all);
    for (std::size_t i = 0; i < all; ++i) offsets[i] = i * stride;
    std::mt19937_64 dice(seed);
    std::shuffle(offsets.begin(), offsets.end(), dice);
    return offsets;
  }
};

/// What a block holds in one verification: told apart by the nonce, by the block's place at the target and by the place
/// within it, so neither old bytes nor those of another block pass.
class Pattern {
 public:
  Pattern(std::uint64_t nonce, std::uint64_t remote_offset) : key_(mix(nonce) ^ mix(remote_offset + 1)) {}

  void fill(std::byte* at, std::uint64_t size) const {
    for (std::uint64_t i = 0; i < size; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = mix(key_ + i);
      std::memcpy(at + i, &word, sizeof(word));
    }
  }
  bool holds(const std::byte* at, std::uint64_t size) const {
    for (std::uint64_t i = 0; i < size; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = mix(key_ + i);
      if (std::memcmp(at + i, &word, sizeof(word)) != 0) return false;
    }
    return true;
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::uint64_t key_;
};

}  // namespace nixl_bench
